use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn name() -> WorkerName {
    "w".parse().unwrap()
}

fn said() -> Value {
    json!({ "v": 1, "worker": "w", "incarnation": 5, "sequence": 7, "url": "http://h:1", "ttl_ms": 15000 })
}

fn event() -> Value {
    json!({ "v": 1, "worker": "w", "incarnation": 5, "sequence": 7, "uptime_ms": 3, "room": true,
        "ranks": [{ "rank": 0, "running": 3, "queued": 1, "kv_used_blocks": 9 }, { "running": 1 }] })
}

fn with(mut value: Value, key: &str, is: Value) -> Vec<u8> {
    value[key] = is;
    value.to_string().into_bytes()
}

#[test]
fn what_is_said_is_understood() {
    let read = announcement(said().to_string().as_bytes(), &name()).unwrap();
    assert_eq!((read.turn.incarnation, read.turn.sequence), (5, 7));
    assert_eq!(announcement(&encode(&read), &name()), Ok(read));
    let read = load(event().to_string().as_bytes(), &name()).unwrap();
    assert_eq!(read.ranks[0].kv_used_blocks, Some(9));
    assert_eq!(read.ranks[1].rank, None);
    assert_eq!(load(&encode(&read), &name()), Ok(read));
}

#[test]
fn a_later_minor_version_is_understood_and_another_major_one_is_told_apart() {
    let newer = with(event(), "colour", json!({ "of": ["what", 1] }));
    assert!(load(&newer, &name()).is_ok());
    assert_eq!(
        load(&with(event(), "v", 2.into()), &name()),
        Err(Unusable::Version)
    );
    let other = json!({ "v": 2, "load": "anything" }).to_string();
    assert_eq!(load(other.as_bytes(), &name()), Err(Unusable::Version));
    assert_eq!(
        announcement(other.as_bytes(), &name()),
        Err(Unusable::Version)
    );
}

#[test]
fn what_is_not_usable_says_why() {
    let many: Vec<u32> = (0..1025).collect();
    for (key, value, why) in [
        ("worker", json!("other"), Unusable::OtherName),
        ("worker", json!("a.b"), Unusable::Malformed),
        ("ttl_ms", json!(299), Unusable::Range),
        ("ttl_ms", json!(60_001), Unusable::Range),
        ("ttl_ms", json!(-1), Unusable::Malformed),
        ("ranks", json!([]), Unusable::Range),
        ("ranks", json!([1, 1]), Unusable::Range),
        ("ranks", json!(many), Unusable::Range),
        ("models", json!([""]), Unusable::Range),
        ("models", json!(["x".repeat(257)]), Unusable::Range),
        ("models", json!(vec!["x"; 1001]), Unusable::Range),
        ("url", json!("x".repeat(LARGEST)), Unusable::TooLarge),
    ] {
        let read = announcement(&with(said(), key, value), &name());
        assert_eq!(read, Err(why), "{key}");
    }
    for (ranks, why) in [
        (json!([{ "rank": 1 }, { "rank": 1 }]), Unusable::Range),
        (json!([{}, {}]), Unusable::Range),
        (json!([{ "running": MOST + 1 }]), Unusable::Range),
        (json!([{ "running": -1 }]), Unusable::Malformed),
        (json!([{ "running": 1.5 }]), Unusable::Malformed),
        (json!([{ "rank": 4_294_967_296_u64 }]), Unusable::Malformed),
        (json!("none"), Unusable::Malformed),
    ] {
        let read = load(&with(event(), "ranks", ranks.clone()), &name());
        assert_eq!(read, Err(why), "{ranks}");
    }
    assert_eq!(load(b"", &name()), Err(Unusable::Malformed));
    assert_eq!(load(b"\xff\x00", &name()), Err(Unusable::Malformed));
    assert!(
        load(
            &with(event(), "ranks", json!([{ "rank": u32::MAX }])),
            &name()
        )
        .is_ok()
    );
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>) {
        let _ = (load(&bytes, &name()), announcement(&bytes, &name()));
    }

    /// A message that was cut or changed anywhere is read or refused, never more.
    #[test]
    fn broken_messages_are_answered(at in 0_usize..150, with: u8) {
        let mut bytes = event().to_string().into_bytes();
        let at = at % bytes.len();
        let _ = load(&bytes[..at], &name());
        bytes[at] = with;
        let _ = load(&bytes, &name());
    }
}
