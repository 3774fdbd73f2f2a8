/**
 * `host`; `dir:NAME`, a folder with a root file system; or `oci:NAME`, `oci:NAME:TAG`,
 * `oci:NAME@sha256:HEX`, an OCI image layout. NAME is an entry of a configured folder, never a
 * path.
 */
export type ImageReference =
  | { readonly kind: 'host' }
  | { readonly kind: 'dir'; readonly name: string }
  | {
      readonly kind: 'oci';
      readonly name: string;
      readonly tag?: string;
      readonly digest?: string;
    };

const NAME = '(?<name>[A-Za-z0-9][A-Za-z0-9._-]{0,127})';
const TAG = '(?<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})';
const DIGEST = '(?<digest>sha256:[0-9a-f]{64})';
const FORM = new RegExp(`^(?<kind>dir|oci):${NAME}(?::${TAG}|@${DIGEST})?$`);

export const parseImageReference = (text: string): ImageReference | undefined => {
  if (text === 'host') return { kind: 'host' };
  const { kind, name, tag, digest } = FORM.exec(text)?.groups ?? {};
  if (name === undefined) return undefined;
  if (kind === 'dir') return tag === undefined && digest === undefined ? { kind, name } : undefined;
  return { kind: 'oci', name, tag, digest };
};
