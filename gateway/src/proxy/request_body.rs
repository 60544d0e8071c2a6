//! Request bodies on their way to the engine, part of which may have been read
//! while the request was queued.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::budget::BufferBudget;
use super::patience::Patience;
use super::silence::Upload;
use super::unread::Unread;

/// How long a body that is read whole, and is half here, waits for room.
const HALF_HERE: Duration = Duration::from_secs(1);

/// What is wrong with a client's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// It ended too early, or is no HTTP.
    #[error("the request body broke off")]
    Broken,
    /// Nothing of it came for too long, or too little.
    #[error(
        "the request body came too slowly: it may pause for {0:?} in all and must then keep up 1 KiB a second"
    )]
    Slow(Duration),
    /// It is larger than this.
    #[error("the request body is larger than {0} bytes")]
    TooLarge(u64),
    /// The memory to read it into was taken by others for so long.
    #[error(
        "other requests' bodies took all of --buffer-budget for {0:?}, and this one's had to be read first"
    )]
    NoRoom(Duration),
}

impl BodyError {
    /// The status that tells the client.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// A request body: what was read ahead, then the rest.
#[derive(Debug, Default)]
pub struct RequestBody {
    ahead: VecDeque<(Frame<Bytes>, Option<OwnedSemaphorePermit>)>,
    rest: Option<Rest>,
    upload: Option<Upload>,
    patience: Option<Patience>,
    /// How much it may be, and how much of that is left.
    most: Option<(u64, u64)>,
}

impl RequestBody {
    /// A body of no bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The body of a client's request, nothing of it read yet.
    #[must_use]
    pub fn new(rest: Incoming, patience: Duration) -> Self {
        Self {
            rest: Some(Rest {
                body: rest,
                unread: None,
            }),
            patience: Some(Patience::new(patience)),
            ..Self::default()
        }
    }

    /// A body of these bytes.
    #[must_use]
    pub fn of(bytes: Bytes) -> Self {
        Self {
            ahead: VecDeque::from([(Frame::data(bytes), None)]),
            ..Self::default()
        }
    }

    /// Lets `unread` know, if there is one, when it is dropped before its end.
    #[must_use]
    pub fn leaving(mut self, unread: Option<Unread>) -> Self {
        if let Some(rest) = &mut self.rest {
            rest.unread = unread;
        }
        self
    }

    /// Tells `upload` from now on how it goes.
    pub fn tell(&mut self, upload: Upload) {
        self.upload = Some(upload);
    }

    /// Lets it be `most` bytes long.
    ///
    /// # Errors
    /// It says itself that it is longer.
    pub fn limit(&mut self, most: u64) -> Result<(), BodyError> {
        self.most = Some((most, most));
        match self.size_hint().lower() {
            announced if announced > most => Err(BodyError::TooLarge(most)),
            _ => Ok(()),
        }
    }

    /// Reads on while the request waits, within `budget`; what does not fit
    /// pauses the reading, for ever without a budget. Returns once all is here.
    /// Cancel safe: what was read is kept.
    ///
    /// One frame (at most 64 KiB) is read before its room is asked for.
    ///
    /// # Errors
    /// The body fails.
    pub async fn read_ahead(&mut self, budget: &BufferBudget) -> Result<(), BodyError> {
        if budget.total() == 0 {
            return pending().await;
        }
        while let Some(frame) = poll_fn(|cx| self.poll_rest(cx)).await {
            let frame = frame?;
            let room = budget.take(len(&frame));
            self.ahead.push_back((frame, None));
            let room = room.await;
            if let Some((_, held)) = self.ahead.back_mut() {
                *held = room;
            }
        }
        Ok(())
    }

    /// Reads all of it, within `budget`: room is taken for what has come, and not for
    /// what was announced, or a client that announces much and sends nothing would
    /// hold up everyone. One that holds nothing yet waits for room as long as for a
    /// client, since it is clients that hold it; one that is half here only for
    /// a second, so that such bodies do not wait for each other.
    ///
    /// # Errors
    /// The body fails, cannot fit the budget, or found no room in it.
    pub async fn read_whole(&mut self, budget: &BufferBudget) -> Result<(), BodyError> {
        let most = u64::from(budget.total());
        let announced = self.rest.as_ref().map(|rest| rest.body.size_hint().exact());
        if announced.flatten().is_some_and(|len| len > most) {
            return Err(BodyError::TooLarge(most));
        }
        let mut read = 0;
        while let Some(frame) = poll_fn(|cx| self.poll_rest(cx)).await {
            let frame = frame?;
            read += len(&frame) as u64;
            if read > most {
                return Err(BodyError::TooLarge(most));
            }
            let limit = match &self.patience {
                _ if self.ahead.iter().any(|(_, room)| room.is_some()) => Some(HALF_HERE),
                patience => patience.as_ref().map(Patience::limit),
            };
            let room = budget.take(len(&frame));
            let room = match limit {
                Some(limit) => timeout(limit, room)
                    .await
                    .map_err(|_| BodyError::NoRoom(limit))?,
                None => room.await,
            };
            self.ahead.push_back((frame, room));
        }
        Ok(())
    }

    /// What has been read and not passed on, in one piece, and the room that it
    /// takes. Trailers are left out.
    #[must_use]
    pub fn into_read(self) -> (Bytes, Vec<OwnedSemaphorePermit>) {
        let mut rooms = Vec::new();
        let mut pieces: VecDeque<Bytes> = VecDeque::new();
        for (frame, room) in self.ahead {
            pieces.extend(frame.into_data());
            rooms.extend(room);
        }
        if pieces.len() < 2 {
            return (pieces.pop_front().unwrap_or_default(), rooms);
        }
        let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
        while let Some(piece) = pieces.pop_front() {
            whole.extend_from_slice(&piece);
        }
        (whole.freeze(), rooms)
    }

    /// What has been read and not passed on, piece by piece.
    pub fn read_so_far(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.ahead
            .iter()
            .filter_map(|(frame, _)| frame.data_ref().map(Bytes::as_ref))
    }

    /// The part that no one has read, to be discarded. `None` if nothing is left.
    #[must_use]
    pub fn into_rest(self) -> Option<Rest> {
        self.rest.filter(|rest| !rest.body.is_end_stream())
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        let Poll::Ready(next) = rest.poll_frame(cx) else {
            let Some(patience) = &mut self.patience else {
                return Poll::Pending;
            };
            let limit = ready!(patience.poll_over(cx));
            return Poll::Ready(Some(Err(BodyError::Slow(limit))));
        };
        Poll::Ready(match next {
            None => {
                self.rest = None;
                None
            }
            Some(Err(_)) => Some(Err(BodyError::Broken)),
            Some(Ok(frame)) => Some(self.count(len(&frame)).map(|()| frame)),
        })
    }

    fn count(&mut self, len: usize) -> Result<(), BodyError> {
        if let Some(patience) = &mut self.patience {
            patience.moved(len);
        }
        if let Some((most, left)) = &mut self.most {
            *left = left
                .checked_sub(len as u64)
                .ok_or(BodyError::TooLarge(*most))?;
        }
        Ok(())
    }
}

/// The part of a body that has not been read.
#[derive(Debug)]
pub struct Rest {
    body: Incoming,
    /// Gets to know if this is dropped before the end.
    unread: Option<Unread>,
}

impl Rest {
    /// The next frame.
    pub async fn frame(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if next.is_none() {
            self.unread = None;
        }
        Poll::Ready(next)
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(unread) = self.unread.take()
            && !self.body.is_end_stream()
        {
            unread.mark();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let next = match this.ahead.pop_front() {
            Some((frame, _room)) => Poll::Ready(Some(Ok(frame))),
            None => this.poll_rest(cx),
        };
        if let Some(upload) = &this.upload {
            match next {
                Poll::Ready(_) => upload.moved(),
                Poll::Pending => upload.waits(),
            }
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        let ended = |rest: &Rest| rest.body.is_end_stream();
        self.ahead.is_empty() && self.rest.as_ref().is_none_or(ended)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self
            .rest
            .as_ref()
            .map_or(Some(0), |rest| rest.body.size_hint().exact());
        let ahead: usize = self.ahead.iter().map(|(frame, _)| len(frame)).sum();
        with_read(rest, ahead)
    }
}

/// The size of `read` bytes and the rest of a body.
pub(super) fn with_read(rest: Option<u64>, read: usize) -> SizeHint {
    rest.map_or_else(SizeHint::default, |rest| {
        SizeHint::with_exact(rest + read as u64)
    })
}

pub(super) fn len(frame: &Frame<Bytes>) -> usize {
    frame.data_ref().map_or(0, Bytes::len)
}
