//! Replays what is known, without libFuzzer: the seeds, what fuzzing has
//! gathered on this machine, and what it has found.

use std::fs;
use std::path::Path;

/// Runs every file of a folder through the target, and counts them.
fn replay(folder: &str, target: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(files) = fs::read_dir(folder) else {
        return 0;
    };
    let mut count = 0;
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        target(&fs::read(path).unwrap());
        count += 1;
    }
    count
}

#[test]
fn gate_ops_holds_on_all_that_is_known() {
    let target = tidegate_fuzz::gate_ops;
    assert!(replay("seeds/gate_ops", target) >= 6, "the seeds are here");
    replay("corpus/gate_ops", target);
    replay("artifacts/gate_ops", target);
}

#[test]
fn first_token_holds_on_all_that_is_known() {
    let target = tidegate_fuzz::first_token;
    assert!(replay("seeds/first_token", target) >= 4, "the seeds are here");
    replay("corpus/first_token", target);
    replay("artifacts/first_token", target);
}

#[test]
fn each_takes_any_bytes() {
    // A plain generator: numbers that look random and are the same every time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for length in 0..400 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        tidegate_fuzz::gate_ops(&bytes);
        tidegate_fuzz::first_token(&bytes);
    }
}
