//! Policy layered before the gate: pure decisions on values.
//!
//! Nothing here reads a clock or does I/O. Time is an argument, so that every
//! decision can be replayed and tested; whoever calls samples the engine, keeps
//! the time, and applies the answers to the gate.
//!
//! | module | decides |
//! | --- | --- |
//! | [`cold_start`] | how far to lower the limit after the engine has idled |

pub mod cold_start;
