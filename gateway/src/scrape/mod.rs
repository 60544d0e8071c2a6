//! Metrics of others, read.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`exposition`] | Prometheus' text format |
//! | [`page`] | a page of a server, fetched |

pub mod exposition;
pub mod page;
