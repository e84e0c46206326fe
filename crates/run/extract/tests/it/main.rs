//! Tests of the drivers and the extractor with scripted models and a virtual clock. No test sleeps.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod absence;
mod agree;
mod blocking;
mod budget;
mod building;
mod coercion;
mod compliance;
mod content;
mod driving;
mod ensemble;
mod evidence;
mod health;
mod interrupt;
mod items;
mod journal;
mod many;
mod observations;
mod observing;
mod ordinary;
mod partials;
mod precision;
mod rest;
mod rotation;
mod streaming;
mod support;
mod trace;
mod transport;
