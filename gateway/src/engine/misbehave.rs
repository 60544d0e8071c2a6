//! The ways in which the engine can fail on request.

use clap::ValueEnum;

/// One way to misbehave. By flag it befalls a share of the generating requests;
/// the request header `x-sim-misbehave` asks for it by the same name.
///
/// Those that strike in mid-stream do so after the first three tokens, or after
/// the last if there are fewer. On a call that does not stream they strike where
/// the answer would be: halfway through it, or instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Misbehave {
    /// No answer at all, not even headers; the connection stays open
    NeverAnswer,
    /// Status 200 and headers, then nothing; the connection stays open
    Stall,
    /// Some tokens, then nothing; the connection stays open
    StallMid,
    /// The connection is reset (TCP RST) before any header
    Reset,
    /// The connection is reset (TCP RST) after some tokens
    ResetMid,
    /// The body ends after some tokens without finish reason or end mark
    Truncated,
    /// Some tokens, then an SSE error event; the connection stays open
    ErrorEvent,
    /// Status 200 and an event stream that ends without any event
    EmptyStream,
    /// The role-only chunk comes at once, the tokens a second later
    RoleOnly,
    /// Status 200 and a body that is not JSON
    BadJson,
    /// Status 400 and a JSON error, to streaming calls too
    #[value(name = "http-400")]
    Http400,
    /// Status 500 and a JSON error
    #[value(name = "http-500")]
    Http500,
}

impl Misbehave {
    /// Reads the name that flag and header use, such as `stall-mid`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::from_str(name.trim(), false).ok()
    }

    /// Whether the request is never submitted to the batch.
    pub(super) fn before_work(self) -> bool {
        use Misbehave::*;
        matches!(
            self,
            NeverAnswer | Stall | Reset | EmptyStream | BadJson | Http400 | Http500
        )
    }
}
