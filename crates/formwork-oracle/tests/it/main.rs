//! The scenes of the oracle.
