//! Flags for the policy, a worker's and a frontend's.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;

use super::read::{PolicyError, read};
use crate::scrape::page::PageUrl;

/// Flags that say which policy is followed, in a frontend's words.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Policy")]
pub struct FollowFlags {
    /// Hold requests by this policy while every worker that could have them is busy or has
    /// just refused, instead of refusing them at once; `tidegate policy init` prints one.
    /// Of the file these count: default_class, api_keys, models, fairness (but for
    /// keep_room_ms), state.sample_interval_ms (how often all are looked at anew), and of a
    /// class its name, priority, weight, rate, queue_timeout_ms (0: refused at once), what
    /// it is promised (first_token_ms, end_to_end_ms), and how much of first_token_ms may
    /// be spent waiting (queue_share). The rest is about one engine, and for its worker.
    /// SIGHUP reads the file again. Each model has queues of its own: between models that
    /// share workers, such as the adapters of one engine, there is no order of priority and
    /// no fair share. A client that sends Expect: 100-continue is told to go on before it is
    /// held, as by a frontend without a policy, which reads bodies to know the model.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,

    /// Whether the policy's decisions are carried out, or only counted.
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t,
        requires = "policy"
    )]
    pub policy_mode: PolicyMode,
}

/// What a worker does by its policy.
const BEFORE_A_GATE: &str = "\
    Decide by this policy before the gate; `tidegate policy init` prints one. Requests then wait \
    in its classes and not in the gate's queue. SIGHUP reads the file again. Bodies are read \
    before anything is decided, within --buffer-budget. So a client that sends Expect: \
    100-continue is told to go on before it is admitted, and may be refused after it has sent its \
    body";

/// Flags of a worker that say which policy it follows, and what that is told.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Policy", mut_arg("policy", |flag| flag.help(BEFORE_A_GATE)))]
pub struct PolicyFlags {
    /// The policy.
    #[command(flatten)]
    pub follow: FollowFlags,

    /// Where the engine's metrics are, if not at /metrics of --engine-url.
    #[arg(long, value_name = "URL", requires = "policy")]
    pub policy_engine_metrics: Option<PageUrl>,

    /// A DCGM exporter's page, for the state of the GPU.
    #[arg(long, value_name = "URL", requires = "policy")]
    pub policy_dcgm: Option<PageUrl>,

    /// The GPU's number on that page, or of NVML.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "policy")]
    pub policy_gpu: u32,
}

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PolicyMode {
    /// They are.
    #[default]
    Enforce,
    /// They are counted, and everything is left to the gate.
    Observe,
}

impl From<PolicyMode> for Mode {
    fn from(mode: PolicyMode) -> Self {
        match mode {
            PolicyMode::Enforce => Mode::Enforce,
            PolicyMode::Observe => Mode::Observe,
        }
    }
}

/// The policy that a worker follows.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// What it is set to.
    pub settings: Settings,
    /// Whether its decisions are carried out.
    pub mode: Mode,
    /// The file that it came from, which can be read again.
    pub file: Option<PathBuf>,
    /// Where the engine's metrics are; `None` is `/metrics` of the engine.
    pub engine_metrics: Option<PageUrl>,
    /// A DCGM exporter's page.
    pub dcgm: Option<PageUrl>,
    /// The GPU's number there.
    pub gpu: u32,
}

impl PolicyConfig {
    /// A policy whose decisions are carried out, on the engine's own metrics.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            mode: Mode::Enforce,
            file: None,
            engine_metrics: None,
            dcgm: None,
            gpu: 0,
        }
    }

    /// The policy that flags name, if they name one.
    ///
    /// # Errors
    /// Its file is unreadable, or something in it is wrong.
    pub fn from_flags(flags: FollowFlags) -> Result<Option<Self>, PolicyError> {
        let Some(file) = flags.policy else {
            return Ok(None);
        };
        let settings = read(&file)?;
        Ok(Some(Self {
            mode: flags.policy_mode.into(),
            file: Some(file),
            ..Self::new(settings)
        }))
    }

    /// The policy that a worker's flags name, if they name one.
    ///
    /// # Errors
    /// As [`from_flags`](Self::from_flags).
    pub fn of_worker(flags: PolicyFlags) -> Result<Option<Self>, PolicyError> {
        let policy = Self::from_flags(flags.follow)?;
        Ok(policy.map(|policy| Self {
            engine_metrics: flags.policy_engine_metrics,
            dcgm: flags.policy_dcgm,
            gpu: flags.policy_gpu,
            ..policy
        }))
    }
}
