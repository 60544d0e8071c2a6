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
//! | [`counts`] | what is counted |
//! | [`connect`] | a connection that is there whenever it can be |
//! | [`bucket`] | the members, as JetStream keeps them |
//! | [`rate`] | how much one worker may say |
//! | [`directory`] | who has announced itself |
//! | [`publish`] | what a worker says |
//! | [`subscribe`] | what a frontend hears |
//! | [`args`] | flags |

pub mod allow;
pub mod args;
pub mod bucket;
pub mod codec;
pub mod connect;
pub mod counts;
pub mod directory;
pub mod dynamo;
pub mod event;
pub mod name;
pub mod order;
pub mod publish;
pub mod rate;
pub mod subject;
pub mod subscribe;

pub use args::{PublishArgs, SubscribeArgs};
pub use connect::NatsConfig;
pub use counts::Counts;
pub use publish::PublishConfig;
pub use subscribe::SubscribeConfig;
