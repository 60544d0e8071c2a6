//! What one hop costs: the same backend behind nginx and behind `tidegate`, in
//! processes of their own, in one run.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`kind`] | streaming or not |
//! | [`backend`] | the server behind every proxy |
//! | [`client`] | requests on kept connections |
//! | [`process`] | a proxy's processes, and the processor time that they took |
//! | [`proxy`] | which proxies there are, and how each is started |
//! | [`rounds`] | who is read when, and what a reading is |
//! | [`report`] | the table |

pub mod backend;
pub mod client;
pub mod kind;
pub mod process;
pub mod proxy;
pub mod report;
pub mod rounds;
