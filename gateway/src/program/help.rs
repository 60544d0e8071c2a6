//! Examples and what to read next, below each command's flags.

pub const PROGRAM: &str = "\
Start here:
  tidegate                       engines, workers, frontend and traffic on this machine; Ctrl-C stops them
  tidegate worker --help         the gate in front of an engine of your own
  tidegate frontend --help       one address before many workers
  tidegate top --help            workers and frontends, watched in a terminal
  tidegate config --help         which limits would be in force, and why
  tidegate size --help           which limit the engine's waiting requests need

RUST_LOG chooses what is logged, such as RUST_LOG=debug or RUST_LOG=tidegate_gateway=trace.";

pub const DEMO: &str = "\
Examples:
  tidegate                       until Ctrl-C
  tidegate demo --duration 30    half a minute, then a summary
  tidegate demo --rate 40        more than the engines can take
  tidegate demo --no-load        servers only, for requests of your own

Next: `tidegate worker --help`, for an engine of your own.";

pub const WORKER: &str = "\
Examples:
  tidegate worker --engine-url http://127.0.0.1:8000
  tidegate worker --engine-url http://127.0.0.1:8000 --dp-ranks 0-7 --max-num-seqs 256
  curl -N http://127.0.0.1:8100/v1/chat/completions -H 'content-type: application/json' \\
    -d '{\"model\":\"sim\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'

RUST_LOG=info,tidegate_gateway::worker::decision=debug logs what the gate decides about each
request, and why; --log-format json makes each line an object.

Next: `tidegate config --help` shows where the limits come from; `tidegate engine --help`
starts an engine to try it with.";

pub const FRONTEND: &str = "\
Examples:
  tidegate frontend --worker http://127.0.0.1:8100 --worker http://127.0.0.1:8101
  tidegate frontend --worker http://127.0.0.1:8100 --router-mode kv \\
    --active-decode-blocks-threshold 0.85 --policy policy.toml
  tidegate frontend --nats nats://10.0.0.2:4222 --allow-workers 10.0.0.0/8:8100
  curl http://127.0.0.1:8080/busy_threshold -H 'content-type: application/json' \\
    -d '{\"model\":\"sim\",\"active_prefill_tokens_threshold\":10000}'

DYN_HTTP_OVERLOAD_STATUS_CODE is the status of refusals, 529 without it.

Next: `tidegate worker --help` for the gate before one engine.";

pub const CONFIG: &str = "\
Example:
  tidegate config --dp-ranks 0-7 --max-num-seqs 256 --request-queue-limit 64

Next: `tidegate worker --help`, which takes the same limits.";

pub const SIZE: &str = "\
Examples:
  tidegate size --metrics-url http://127.0.0.1:8100/metrics --interval 60s
  tidegate size --prometheus-url http://127.0.0.1:9090 --match 'instance=\"127.0.0.1:8100\"' --rank 0

A window in which requests queued, were refused, or left in numbers is refused, with the
reason and exit code 1.

Next: `tidegate worker --engine-request-waiting-limit N` with the limit found.";

pub const TOP: &str = "\
Examples:
  tidegate top --url http://127.0.0.1:8100
  tidegate top --url http://127.0.0.1:8080 --url http://127.0.0.1:8100 --url http://127.0.0.1:8101
  tidegate top --url http://127.0.0.1:8100 --once

The page at /tidegate/ of each shows the same, and the last decisions.";

pub const ENGINE: &str = "\
Example:
  tidegate engine --listen 127.0.0.1:8000 --max-num-seqs 16
  tidegate worker --engine-url http://127.0.0.1:8000 --max-num-seqs 16

Next: `tidegate worker --help` for the gate in front, `tidegate load --help` for traffic.";

pub const LOAD: &str = "\
Examples:
  tidegate load --url http://127.0.0.1:8100 --rate 20 --duration 30
  tidegate load --url http://127.0.0.1:8100 --trace trace.csv --speed 4 --clients-leave 0.1";

pub const POLICY: &str = "\
Examples:
  tidegate policy init > policy.toml
  tidegate policy check policy.toml
  tidegate worker --engine-url http://127.0.0.1:8000 --policy policy.toml --policy-mode observe

Next: `tidegate simulate --help` shows what it does under load.";

pub const SIMULATE: &str = "\
Examples:
  tidegate simulate --plot goodput.svg
  tidegate simulate --policy policy.toml --ways policy --loads 1,2,4
  tidegate simulate --trace trace.csv --duration 600

Next: `tidegate policy --help` for the file.";
