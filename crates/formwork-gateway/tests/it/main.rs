//! The service over sockets, in front of scripted servers.

mod bad_input;
mod dialogues;
mod extract;
mod keys;
mod outcomes;
mod passing;
mod service;
mod streams;
mod support;
