//! Enums that know all their variants: the list stands nowhere else, so nobody forgets one in it.

/// An enum without fields, with the list of its variants. Where each has a name for reports, as in `Full: "full"`, with that.
///
/// ```
/// wire::listed! {
///     /// Why something went wrong.
///     #[derive(Clone, Copy, PartialEq, Debug)]
///     pub enum Cause {
///         /// There was no capacity.
///         Full: "full",
///         /// It came too late.
///         Late: "late",
///     }
/// }
///
/// assert_eq!(Cause::ALL, [Cause::Full, Cause::Late]);
/// assert_eq!(Cause::Late.name(), "late");
/// ```
#[macro_export]
macro_rules! listed {
    ($(#[$of_all:meta])* pub enum $Enum:ident {
        $($(#[$of_one:meta])* $Variant:ident: $name:literal,)*
    }) => {
        $crate::listed! { $(#[$of_all])* pub enum $Enum { $($(#[$of_one])* $Variant,)* } }

        impl $Enum {
            /// What it is called in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name,)* }
            }
        }
    };
    ($(#[$of_all:meta])* pub enum $Enum:ident {
        $($(#[$of_one:meta])* $Variant:ident $(= $number:literal)?,)*
    }) => {
        $(#[$of_all])*
        pub enum $Enum { $($(#[$of_one])* $Variant $(= $number)?,)* }

        impl $Enum {
            /// All of them, in their order.
            pub const ALL: [Self; [$(Self::$Variant),*].len()] = [$(Self::$Variant),*];
        }
    };
}
