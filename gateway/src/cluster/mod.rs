//! Membership and load over NATS: what workers say of themselves, and what frontends make
//! of it. `CLUSTER.md` is the contract.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`name`] | names of workers |
//! | [`subject`] | where things are said |
//! | [`event`], [`codec`] | what is said, and its bytes |
//! | [`dynamo`] | Dynamo's own load events |
//! | [`order`] | which words are new, and how old they are |
//! | [`allow`] | where members may be |

pub mod allow;
pub mod codec;
pub mod dynamo;
pub mod event;
pub mod name;
pub mod order;
pub mod subject;
