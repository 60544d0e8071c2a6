//! The gate (placeholder until the next commit).
