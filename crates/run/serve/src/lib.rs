//! Common parts of Formwork's HTTP services.
//!
//! - [`serve`] accepts connections: their number is limited, clients that send or read too slowly are disconnected, and the service ends gracefully.
//! - [`Tls`] reads the certificate of a service from files.
//! - [`read_body`] reads a body with limits of size and time.
//! - [`Queue`] limits the requests that are worked on and those that wait, in fair turns.
//! - [`Seats`] limits what each client has open at once.
//! - [`presented_key`], [`media_type`], [`is_compressed`] and [`with_status_headers`] read and write headers.
//! - [`RequestId`] identifies a request in logs and in its response.
//! - [`Kept`] cancels a run when its client disconnects, instead of dropping it, so that it is still recorded.

mod body;
mod headers;
mod kept;
mod listen;
mod patience;
mod queue;
mod request_id;
mod seats;
mod tls;

pub use body::{BodyError, read_body};
pub use headers::{is_compressed, media_type, presented_key, with_status_headers};
pub use kept::Kept;
pub use listen::{Connections, Draining, Peer, serve, serve_with};
pub use queue::{Pace, Queue, QueueError, Turn};
pub use request_id::{RequestId, X_REQUEST_ID};
pub use seats::{Seat, Seats};
pub use tls::{Tls, TlsError};
