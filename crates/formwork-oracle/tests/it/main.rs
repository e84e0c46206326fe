//! The scenes of the oracle.
mod wallet;
