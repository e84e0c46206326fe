/// Implements [`Debug`](std::fmt::Debug) by the name of a type and some of its fields. Fields without a name here, such as functions
/// and secrets, are not printed.
///
/// Methods after a field are called, and the result is printed under the name of the field.
///
/// ```
/// struct Tool {
///     name: String,
///     arguments: Vec<u8>,
///     run: fn(),
/// }
///
/// formwork_core::debug_fields!(Tool { name, arguments.len() });
///
/// let tool = Tool { name: "clock".to_owned(), arguments: Vec::new(), run: || () };
/// assert_eq!(format!("{tool:?}"), r#"Tool { name: "clock", arguments: 0, .. }"#);
/// ```
#[macro_export]
macro_rules! debug_fields {
    ($type:ident $(<$($argument:tt),+>)? { $($field:ident $(. $method:ident())*),* }) => {
        impl $(<$($argument),+>)? ::std::fmt::Debug for $type $(<$($argument),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field $(. $method())*))*
                    .finish_non_exhaustive()
            }
        }
    };
}
