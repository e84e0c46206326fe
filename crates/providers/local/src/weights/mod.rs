//! Model files: from a path, the cache, a Python wheel, or a model hub.

mod download;
mod folder;
mod hash;
mod hub;
mod known;
mod models;
mod progress;
mod stamp;
mod store;
mod wheel;

pub use hub::HubFile;
pub use known::{KNOWN, Known};
pub use models::Cached;
pub use progress::Progress;
pub use store::{Hub, Store};

pub(crate) use folder::Scratch;
pub(crate) use hash::sha256;
pub(crate) use stamp::{Found, noted, place, verify};
