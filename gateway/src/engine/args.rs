//! The command line of `tidegate engine`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::batch::BatchConfig;
use super::config::EngineConfig;
use super::cost::CostModel;
use super::misbehave::Misbehave;
use super::server::Engine;
use crate::cli::values::address;

/// A simulated inference engine: continuous batching, a KV cache that overflows,
/// and the step times of Llama-2-7B on an H100, without a GPU or a model.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000", value_parser = address)]
    pub listen: SocketAddr,

    /// Name of the model served; requests for another get 404
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub model: String,

    /// Data-parallel ranks, each with a batch and a KV cache of its own (1 to 1024)
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub ranks: u32,

    /// Id of the first rank; the others count up from it
    #[arg(
        long,
        value_name = "ID",
        allow_negative_numbers = true,
        default_value_t = 0
    )]
    pub first_rank: u32,

    /// Most sequences in a rank's batch; others wait, without limit
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_num_seqs: u32,

    /// Most tokens computed in one step; longer prompts are prefilled in chunks.
    /// At least --max-num-seqs
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, default_value_t = 2048,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_num_batched_tokens: u32,

    /// KV cache blocks per rank; when they run out the youngest sequence loses
    /// its own and computes everything again. The default is what an 80 GB GPU
    /// has left
    #[arg(long, value_name = "BLOCKS", allow_negative_numbers = true, default_value_t = 6700,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub kv_blocks: u32,

    /// Tokens in a KV cache block
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub block_size: u32,

    /// How much faster than an H100 to run, such as 10 for a tenth of the time
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true, default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// Seed of output lengths, text and misbehaviour
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 0
    )]
    pub seed: u64,

    /// Seconds for which requests get 503 after the start, as while a model loads
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value_t = 0.0, value_parser = seconds)]
    pub startup_delay: f64,

    /// Fail in this way; a request chooses for itself with the header x-sim-misbehave
    #[arg(long, value_name = "KIND", value_enum)]
    pub misbehave: Option<Misbehave>,

    /// Share of the requests that --misbehave befalls (0 to 1)
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, default_value_t = 1.0, value_parser = share)]
    pub misbehave_rate: f64,
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("expected a number from {least} to {most}")),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    within(text, 0.001, 1e6)
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 0.0, 86400.0)
}

fn share(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1.0)
}

impl From<EngineArgs> for EngineConfig {
    fn from(args: EngineArgs) -> Self {
        Self {
            listen: args.listen,
            model: args.model,
            ranks: args.ranks,
            first_rank: args.first_rank,
            batch: BatchConfig {
                max_num_seqs: args.max_num_seqs,
                max_num_batched_tokens: args.max_num_batched_tokens,
                kv_blocks: args.kv_blocks,
                block_size: args.block_size,
                cost: CostModel::default(),
            },
            speed: args.speed,
            seed: args.seed,
            startup_delay: Duration::try_from_secs_f64(args.startup_delay).unwrap_or_default(),
            misbehave: args.misbehave,
            misbehave_rate: args.misbehave_rate,
        }
    }
}

/// Runs an engine until `shutdown` is cancelled, then closes every connection.
///
/// # Errors
/// As [`Engine::start`].
pub async fn run(args: EngineArgs, shutdown: CancellationToken) -> io::Result<()> {
    let engine = Engine::start(args.into()).await?;
    tracing::info!(url = engine.url(), "simulated engine listening");
    shutdown.cancelled().await;
    engine.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        engine: EngineArgs,
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let cli = Cli::try_parse_from(["engine"]).unwrap();
        let (ours, library) = (EngineConfig::from(cli.engine), EngineConfig::default());
        assert_eq!(format!("{:?}", ours.batch), format!("{:?}", library.batch));
        assert_eq!(ours.model, library.model);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for bad in [
            "--ranks=0",
            "--speed=NaN",
            "--speed=0",
            "--misbehave-rate=2",
        ] {
            assert!(Cli::try_parse_from(["engine", bad]).is_err(), "{bad}");
        }
        let cli = Cli::try_parse_from(["engine", "--misbehave=http-500"]).unwrap();
        assert_eq!(cli.engine.misbehave, Some(Misbehave::Http500));
    }
}
