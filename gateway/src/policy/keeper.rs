//! The task that lets in who is next, on time.
//!
//! It looks whenever something happened inside the engine, the gate may have room,
//! or a held request's time is up.

use std::future::pending;
use std::sync::Arc;

use tokio::time::sleep_until;

use super::door::Door;
use super::layer::Layer;

/// Runs until it is dropped; cancel safe.
pub(crate) async fn keep<D: Door>(layer: Arc<Layer<D>>) {
    loop {
        // Before letting anyone in, so that room that frees in between is not missed;
        // and only if somebody is held, since listening slows the gate down.
        let holds = layer.next_timeout().is_some();
        let room = holds.then(|| layer.door.room());
        layer.settle();
        let next = layer.next_timeout();
        let time_is_up = async {
            match next {
                Some(at) => sleep_until(layer.instant(at)).await,
                None => pending().await,
            }
        };
        let room_frees = async {
            match room {
                Some(room) if next.is_some() => room.await,
                _ => pending().await,
            }
        };
        tokio::select! {
            () = layer.happened.notified() => {}
            () = room_frees => {}
            () = time_is_up => {}
        }
    }
}
