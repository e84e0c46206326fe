//! The mechanisms that Formwork's HTTP services share.
//!
//! - [`serve`] takes connections: their number is limited, slow clients are timed out, and the end is graceful.
//! - [`Tls`] is the certificate of a service, from files.
//! - [`read_body`] reads a body within limits of size and time.
//! - [`RequestId`] names a request in logs and in its response.
//! - [`Kept`] is a run that is cancelled when nobody waits for it, rather than dropped, so that it is still recorded.

mod body;
mod kept;
mod listen;
mod request_id;
mod tls;

pub use body::{BodyError, read_body};
pub use kept::Kept;
pub use listen::{Connections, Draining, serve};
pub use request_id::{RequestId, X_REQUEST_ID};
pub use tls::{Tls, TlsError};
