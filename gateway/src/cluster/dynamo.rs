//! NVIDIA Dynamo's load events: MessagePack with named fields, in an envelope.
//!
//! | envelope | payload, MessagePack again |
//! | --- | --- |
//! | `topic`: `kv_metrics` | `worker_id`: u64 |
//! | `publisher_id`, `sequence`: u64 | `dp_rank`: u32, 0 if left out |
//! | `published_at`: milliseconds | `active_decode_blocks`, `active_prefill_tokens`, |
//! | `payload`: bytes | `kv_used_blocks`: u64 or nothing |

use serde::Deserialize;
use serde_bytes::ByteBuf;

use super::codec::Unusable;

/// The topic of load events.
const TOPIC: &str = "kv_metrics";

/// The most bytes in one event, which needs some 200.
const LARGEST: usize = 64 << 10;

/// The largest count that is believed.
const MOST: u64 = 1 << 53;

/// What a worker of Dynamo says of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveLoad {
    /// Who publishes: one that was started anew has another number.
    pub publisher_id: u64,
    /// Counts what it published.
    pub sequence: u64,
    /// The worker.
    pub worker_id: u64,
    /// The rank.
    pub dp_rank: u32,
    /// KV blocks that the scheduler counts as active.
    pub active_decode_blocks: Option<u64>,
    /// Prompt tokens whose first output token has not come.
    pub active_prefill_tokens: Option<u64>,
    /// KV blocks that the worker holds.
    pub kv_used_blocks: Option<u64>,
}

#[derive(Deserialize)]
struct Envelope {
    topic: String,
    publisher_id: u64,
    sequence: u64,
    payload: ByteBuf,
}

#[derive(Deserialize)]
struct Payload {
    worker_id: u64,
    #[serde(default)]
    dp_rank: u32,
    #[serde(default)]
    active_decode_blocks: Option<u64>,
    #[serde(default)]
    active_prefill_tokens: Option<u64>,
    #[serde(default)]
    kv_used_blocks: Option<u64>,
}

/// Reads an event; `None` if it is of another topic.
///
/// # Errors
/// When it is not usable.
pub fn read(bytes: &[u8]) -> Result<Option<ActiveLoad>, Unusable> {
    if bytes.len() > LARGEST {
        return Err(Unusable::TooLarge);
    }
    let envelope: Envelope = rmp_serde::from_slice(bytes).map_err(|_| Unusable::Malformed)?;
    if envelope.topic != TOPIC {
        return Ok(None);
    }
    let load: Payload =
        rmp_serde::from_slice(&envelope.payload).map_err(|_| Unusable::Malformed)?;
    let counts = [
        load.active_decode_blocks,
        load.active_prefill_tokens,
        load.kv_used_blocks,
    ];
    if counts.into_iter().flatten().any(|count| count > MOST) {
        return Err(Unusable::Range);
    }
    Ok(Some(ActiveLoad {
        publisher_id: envelope.publisher_id,
        sequence: envelope.sequence,
        worker_id: load.worker_id,
        dp_rank: load.dp_rank,
        active_decode_blocks: load.active_decode_blocks,
        active_prefill_tokens: load.active_prefill_tokens,
        kv_used_blocks: load.kv_used_blocks,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text of under 32 bytes.
    fn text(of: &str) -> Vec<u8> {
        let mut bytes = vec![0xa0 | of.len() as u8];
        bytes.extend(of.as_bytes());
        bytes
    }

    fn number(of: u64) -> Vec<u8> {
        let mut bytes = vec![0xcf];
        bytes.extend(of.to_be_bytes());
        bytes
    }

    fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0x80 | fields.len() as u8];
        for (name, value) in fields {
            bytes.extend(text(name));
            bytes.extend(value);
        }
        bytes
    }

    /// Bytes of under 256.
    fn binary(of: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xc4, of.len() as u8];
        bytes.extend(of);
        bytes
    }

    fn envelope(topic: &str, payload: Vec<u8>) -> Vec<u8> {
        map(&[
            ("topic", text(topic)),
            ("publisher_id", number(77)),
            ("sequence", vec![5]),
            ("published_at", number(1_764_483_600_123)),
            ("payload", payload),
            ("published_at_ns", number(1_764_483_600_123_456_789)),
        ])
    }

    fn payload() -> Vec<u8> {
        map(&[
            ("worker_id", number(u64::MAX)),
            ("dp_rank", vec![3]),
            ("active_decode_blocks", number(120)),
            ("active_prefill_tokens", vec![0xc0]),
            ("kv_used_blocks", vec![9]),
        ])
    }

    #[test]
    fn an_event_is_read_from_its_fields() {
        let expected = ActiveLoad {
            publisher_id: 77,
            sequence: 5,
            worker_id: u64::MAX,
            dp_rank: 3,
            active_decode_blocks: Some(120),
            active_prefill_tokens: None,
            kv_used_blocks: Some(9),
        };
        let bytes = envelope("kv_metrics", binary(&payload()));
        assert_eq!(read(&bytes), Ok(Some(expected)));
        // Bytes may also be written as a list of numbers.
        let payload = payload();
        let mut list = vec![0xdc];
        list.extend((payload.len() as u16).to_be_bytes());
        for byte in payload {
            list.extend([0xcc, byte]);
        }
        assert_eq!(read(&envelope("kv_metrics", list)), Ok(Some(expected)));
    }

    #[test]
    fn what_is_left_out_is_not_told_and_the_rank_is_0() {
        let bytes = envelope("kv_metrics", binary(&map(&[("worker_id", vec![1])])));
        let load = read(&bytes).unwrap().unwrap();
        assert_eq!((load.worker_id, load.dp_rank), (1, 0));
        assert_eq!(load.active_decode_blocks.or(load.kv_used_blocks), None);
    }

    #[test]
    fn other_topics_are_passed_over_and_garbage_is_refused() {
        assert_eq!(read(&envelope("kv_events", binary(b"anything"))), Ok(None));
        for bytes in [vec![], vec![0xc0], b"{}".to_vec(), vec![0xff; 100]] {
            assert_eq!(read(&bytes), Err(Unusable::Malformed));
        }
        let nameless = binary(&map(&[("dp_rank", vec![1])]));
        assert_eq!(
            read(&envelope("kv_metrics", nameless)),
            Err(Unusable::Malformed)
        );
        // Longer than what follows.
        let cut = vec![0xc6, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(read(&envelope("kv_metrics", cut)), Err(Unusable::Malformed));
        let huge = map(&[("worker_id", vec![1]), ("kv_used_blocks", number(u64::MAX))]);
        assert_eq!(
            read(&envelope("kv_metrics", binary(&huge))),
            Err(Unusable::Range)
        );
        assert_eq!(read(&vec![0; LARGEST + 1]), Err(Unusable::TooLarge));
    }

    proptest! {
        #[test]
        fn broken_events_are_answered(at: prop::sample::Index, with: u8, any: Vec<u8>) {
            let mut bytes = envelope("kv_metrics", binary(&payload()));
            let at = at.index(bytes.len());
            let _ = read(&bytes[..at]);
            bytes[at] = with;
            let _ = (read(&bytes), read(&any));
        }
    }
}
