//! What all wire types have in common: JSON with names in kebab case, without the fields that are not known, and a schema.

macro_rules! wire {
    () => {};
    ($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* } $($more:tt)*) => {
        #[serde_with::skip_serializing_none]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        $(#[$meta])*
        pub struct $name { $($body)* }

        wire! { $($more)* }
    };
    ($(#[$meta:meta])* pub enum $name:ident { $($body:tt)* } $($more:tt)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr)]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        $(#[$meta])*
        pub enum $name { $($body)* }

        impl $name {
            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                self.into()
            }
        }

        wire! { $($more)* }
    };
}

pub(crate) use wire;
