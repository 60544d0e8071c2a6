//! A simulator of a worker: arrivals, a way in, and the simulated engine, in
//! virtual time.
//!
//! Events are handled one after another in the order of their times, so that the
//! same requests give the same report, always, and a minute of traffic takes a
//! fraction of a second. The engine is the one of [`engine`](crate::engine): its
//! [`Batch`](crate::engine::batch::Batch) decides what a step computes and how
//! long it takes; the gate is its sequential specification,
//! [`SpecGate`](tidegate::spec::SpecGate); the policy is the real one.
//!
//! ```
//! use tidegate_gateway::engine::batch::BatchConfig;
//! use tidegate_gateway::simulate::{Setup, WayIn, Workload, simulate};
//! use tidegate_policy::file;
//!
//! let setup = Setup::new(BatchConfig::default(), file::parse(file::DEFAULT)?);
//! let requests = Workload::default().at_rate(2.0).generate(setup.until, 1);
//! let report = simulate(&setup, &WayIn::Open, &requests);
//! assert!(report.in_all().attainment().is_some_and(|share| share > 0.9));
//! # Ok::<(), file::FileError>(())
//! ```
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | `request` | a request to come |
//! | `workload` | seeded requests, and recorded ones |
//! | `report` | what became of them |
//! | `door` | what a door has to do, and the open one |
//! | `gate_door` | the gate alone |
//! | `policy_door` | the policy before the gate |
//! | `way_in` | which of them stands before the engine |
//! | `engine` | the engine in virtual time |
//! | `retries` | clients that come again |
//! | `world` | the events, and who acts on them |
//! | `sweep` | offered load from little to far too much |
//! | `trace` | recorded requests |
//! | `table`, `plot` | a sweep as text, and as SVG |
//! | `command` | the command line |

mod command;
mod door;
mod engine;
mod gate_door;
mod plot;
mod policy_door;
mod report;
mod request;
mod retries;
mod sweep;
mod table;
mod trace;
mod way_in;
mod workload;
mod world;

pub use command::{SimulateArgs, run};
pub use engine::{Cold, Slow};
pub use report::{ClassReport, Report};
pub use request::Request;
pub use retries::{Pause, Retries};
pub use sweep::{Length, Point, sustainable, sweep};
pub use trace::read as read_trace;
pub use way_in::WayIn;
pub use workload::Workload;
pub use world::{Setup, simulate};
