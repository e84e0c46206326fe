//! The number of connections, requests or streams that each client has open.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Limits what each client has open at once, for example the requests of an API key. Clones share the numbers.
///
/// ```
/// let seats = formwork_serve::Seats::default();
/// let first = seats.take("alice", 1);
/// assert!(first.is_some() && seats.take("alice", 1).is_none() && seats.take("bob", 1).is_some());
/// drop(first);
/// assert!(seats.take("alice", 1).is_some());
/// ```
#[derive(Debug, Clone)]
pub struct Seats<K>(Arc<Mutex<HashMap<K, usize>>>);

/// The place of an open connection, request or stream, which is free again when this value is dropped.
///
/// ```
/// let seat: Option<formwork_serve::Seat<&str>> = formwork_serve::Seats::default().take("alice", 0);
/// assert!(seat.is_none());
/// ```
#[derive(Debug)]
pub struct Seat<K: Eq + Hash> {
    seats: Seats<K>,
    client: K,
}

impl<K> Default for Seats<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> Seats<K> {
    /// Takes a place of a client; `None` if it has `max` of them already.
    pub fn take(&self, client: K, max: usize) -> Option<Seat<K>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(client.clone()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Seat { seats: self.clone(), client })
    }
}

impl<K: Eq + Hash> Drop for Seat<K> {
    fn drop(&mut self) {
        let mut open = self.seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

impl Seats<IpAddr> {
    /// Takes the place of a connection of an address. Those of this machine are not limited.
    pub(crate) fn connect(&self, address: IpAddr, max: usize) -> Option<Seat<IpAddr>> {
        let address = address.to_canonical();
        let max = if address.is_loopback() { usize::MAX } else { max };
        // A host has a whole network of addresses in IPv6.
        let network = match address {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            address => address,
        };
        self.take(network, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_more_connections_than_its_limit_and_this_machine_has_none() {
        let seats = Seats::default();
        let take = |address: &str| seats.connect(address.parse().unwrap(), 2);
        let held = [take("10.0.0.1"), take("::ffff:10.0.0.1"), take("2001:db8::1"), take("2001:db8::2")];
        assert!(held.iter().all(Option::is_some));
        for (address, is_free) in [
            ("10.0.0.1", false),
            ("10.0.0.2", true),
            ("2001:db8::3", false),
            ("2001:db8:0:1::1", true),
            ("127.0.0.1", true),
            ("::1", true),
        ] {
            assert_eq!(take(address).is_some(), is_free, "{address}");
        }
        drop(held);
        assert!(take("10.0.0.1").is_some() && seats.0.lock().unwrap().is_empty());
    }
}
