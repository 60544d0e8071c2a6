//! Operation sequences on the gate, against its references.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::gate_ops(bytes));

#[cfg(not(fuzzing))]
fn main() {
    tidegate_fuzz::replay(tidegate_fuzz::gate_ops);
}
