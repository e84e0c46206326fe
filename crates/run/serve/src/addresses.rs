//! The number of open connections of each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The open connections by address. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    max: usize,
}

/// An open connection of an address, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    addresses: Addresses,
    /// `None` for an address that is not limited.
    address: Option<IpAddr>,
}

impl Addresses {
    pub(crate) fn new(max: usize) -> Self {
        Self { open: Arc::default(), max }
    }

    /// Counts a connection; `None` if the address has too many.
    pub(crate) fn seat(&self, address: IpAddr) -> Option<Seat> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Some(Seat { addresses: self.clone(), address: None });
        }
        // A host has a whole network of addresses in IPv6.
        let address = match address {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            address => address,
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Seat { addresses: self.clone(), address: Some(address) })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut open = self.addresses.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_more_connections_than_its_limit_and_this_machine_has_none() {
        let addresses = Addresses::new(2);
        let take = |address: &str| addresses.seat(address.parse().unwrap());
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
        assert!(take("10.0.0.1").is_some() && addresses.open.lock().unwrap().is_empty());
    }
}
