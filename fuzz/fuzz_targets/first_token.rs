//! Streams of events, told by the gateway's watcher and by a slow parser.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::first_token(bytes));

#[cfg(not(fuzzing))]
fn main() {
    tidegate_fuzz::replay(tidegate_fuzz::first_token);
}
