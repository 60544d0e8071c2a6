//! What a client still sends that nobody wants.

use crate::proxy::request_body::RequestBody;
use crate::proxy::unread::{DISCARD_BYTES, DISCARD_TIME};

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
