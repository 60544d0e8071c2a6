//! `gateway/deploy`: whether its files are valid, agree with each other, and say to the
//! program what it understands.
//!
//! Needs `python3` with its `venv` module, and PyPI for the first run, for the schemas and
//! linters that `requirements.txt` pins; and Prometheus' `promtool`, as the test
//! `prometheus` does. No cluster and no container is started.

#[path = "../caller/mod.rs"]
#[allow(dead_code, reason = "a part is needed")]
mod caller;
mod checked;
mod containers;
mod limits;
mod numbers;
mod objects;
mod pods;
mod pressure;
#[path = "../program/mod.rs"]
mod program;
#[path = "../prometheus/server.rs"]
#[allow(dead_code, reason = "promtool alone is needed")]
mod prometheus;
#[path = "../python/mod.rs"]
mod python;
mod running;
mod schemas;
#[path = "../stack/mod.rs"]
mod stack;
