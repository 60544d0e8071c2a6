//! What a client still sends that nobody wants.

use std::time::Duration;

use http_body_util::BodyExt;

use crate::proxy::request_body::RequestBody;

/// How much of a refused request's body is read and thrown away, and for how
/// long, so that its client gets to read the answer.
const DISCARD_BYTES: usize = 1 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Reads on for a client that is still sending what nobody wants, within
/// bounds. Then the connection closes, or the HTTP/2 stream ends.
pub(crate) fn discard(body: RequestBody) {
    let Some(mut rest) = body.into_rest() else {
        return;
    };
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, async move {
        let mut room = DISCARD_BYTES;
        while let Some(Ok(frame)) = rest.frame().await {
            let len = frame.data_ref().map_or(0, bytes::Bytes::len);
            match room.checked_sub(len) {
                Some(left) => room = left,
                None => return,
            }
        }
    }));
}
