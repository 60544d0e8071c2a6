//! What the commands of `tidegate` have in common.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`failure`] | why a command ended badly, and the exit code |
//! | [`files`] | how many files may be open |
//! | [`live`] | status lines, in place on a terminal |
//! | [`logging`] | where log lines go, and in which format |
//! | [`output`] | what a command was asked for, on standard output |
//! | [`sparing`] | warnings that are due too often |
//! | [`stop`] | Ctrl-C and SIGTERM as one token |
//! | [`values`] | values that several commands take |

pub mod failure;
pub mod files;
pub mod live;
pub mod logging;
pub mod output;
pub mod sparing;
pub mod stop;
pub mod values;
