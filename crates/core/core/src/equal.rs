//! Equality without the parts of a value that a stored copy lacks.

/// Makes all values of each of these types equal, for parts that do not count when the values around them are compared.
macro_rules! always_equal {
    ($($type:ident),+) => {
        $(impl PartialEq for $type {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        })+
    };
}

pub(crate) use always_equal;
