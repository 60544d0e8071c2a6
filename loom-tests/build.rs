//! Hands the optimisation level to the guard in `check`, which Rust code cannot see.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=TIDEGATE_LOOM_OPT_LEVEL={level}");
}
