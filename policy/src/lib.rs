//! Policy layered before the gate: pure decisions on values.
//!
//! Nothing here reads a clock or does I/O. Time is an argument, so that every
//! decision can be replayed and tested; whoever calls samples the engine, keeps
//! the time, and applies the answers to the gate.
//!
//! | module | decides, or knows |
//! | --- | --- |
//! | [`class`], [`rate`] | what a request's class promises, and how often it may come |
//! | [`profile`], [`buckets`] | what a request will ask of the engine |
//! | [`memory`], [`state`], [`sampler`], [`published`] | the engine's state, and how old it is |
//! | [`engine_page`], [`device_page`], [`page`] | what a metrics page says of it |
//! | [`decision`], [`reason`] | admit, wait or refuse, and why |
//! | [`drain`] | how long a request will be held |
//! | [`cold_start`] | how far to lower the limit after the engine has idled |
//! | [`fill`] | whether the batch has a slot to fill |
//! | [`headroom`] | who goes first when memory is short |
//! | [`limit`], [`tuner`] | the limit in force, and the share of it that keeps promises |
//! | [`judge`] | puts these together and keeps what they learn |
//! | [`fairness`], [`throughput`] | who is next of those that are held, and how many may be |
//! | [`kept`] | room kept for classes that lately needed it |
//! | [`desk`] | holds requests, and says what became of whom |
//! | [`shadow`] | what is carried out, and what is only counted |
//! | [`quality`], [`glance`] | what is seen: GPU, concurrency, quality of service |
//! | [`settings`], [`file`](mod@file) | what all of it is set to |
//! | [`line`](mod@line), [`ema`], [`rolling`], [`turns`] | the statistics that these learn with |

pub mod buckets;
pub mod class;
pub mod cold_start;
pub mod decision;
pub mod desk;
pub mod device_page;
pub mod drain;
pub mod ema;
pub mod engine_page;
pub mod fairness;
pub mod file;
pub mod fill;
pub mod glance;
pub mod headroom;
pub mod judge;
pub mod kept;
pub mod limit;
pub mod line;
pub mod memory;
pub mod page;
pub mod profile;
pub mod published;
pub mod quality;
pub mod rate;
pub mod reason;
pub mod rolling;
pub mod sampler;
pub mod settings;
pub mod shadow;
pub mod state;
pub mod throughput;
pub mod tuner;
pub mod turns;
