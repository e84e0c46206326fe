//! Uses only this crate: splits a body of server-sent events into messages, regardless of where its chunks end.
//!
//! `cargo run -p formwork-wire --example embed-wire`

use formwork_wire::{Framing as _, Sse};

fn main() -> Result<(), formwork_core::Fault> {
    let body = "data: {\"delta\": \"Lis\"}\n\ndata: {\"delta\": \"boa é\"}\n\ndata: [DONE]\n\n";
    let mut sse = Sse::default();
    for chunk in body.as_bytes().chunks(7) {
        sse.push(chunk);
        while let Some(message) = sse.next() {
            println!("{}", message?);
        }
    }
    Ok(())
}
