//! Names the features that only tests add to dependencies.
//!
//! Cargo compiles a dependency once for each set of its features. Without this crate, `cargo test` would add features that
//! `cargo run --bin formwork` does not have, and would compile almost every dependency a second time. Both commands consider all
//! members of the workspace, so a feature that a member names here holds for both. The crate has no items, and no crate
//! depends on it. `cargo xtask tidy` fails if tests add a feature that is missing here.
