//! What a score leaves behind.
