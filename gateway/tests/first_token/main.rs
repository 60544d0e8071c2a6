//! First tokens and ends of a stream, against a slow and obvious parser.

mod check;
mod reference;

use proptest::prelude::*;
use reference::{TABLE, told};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_watcher_tells_what_a_slow_parser_reads(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        check::check(&bytes);
    }
}

#[test]
fn the_slow_parser_reads_its_own_table() {
    for (data, says) in TABLE {
        let body = format!("event: x\r\n: y\ndata: {data}\r\r");
        assert_eq!(told(body.as_bytes()), Some(says), "{data}");
    }
    assert_eq!(
        told(br#"data: {"not":"in the table"}"#),
        Some(reference::Told::Nothing)
    );
    assert_eq!(told(b"data: {\"not\":\"in the table\"}\n\n"), None);
}
