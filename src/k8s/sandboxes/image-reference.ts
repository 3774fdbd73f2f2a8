/**
 * Image names as kubelets accept them: `[DOMAIN/]NAME[:TAG][@DIGEST]`, by the OCI distribution and
 * image specifications. DOMAIN follows distribution/reference, which container runtimes share.
 */

/** Includes the domain, `docker.io` by default. */
const LONGEST_NAME = 255;
const SEVERAL = 4;

const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const DOMAIN = new RegExp(`^(?:${LABEL}(?:\\.${LABEL})*|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?$`);
const NAME = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;
/** Kubelets treat a name of this form as an image's id. */
const IMAGE_ID = /^[0-9a-f]{64}$/;

/** Undefined if the name is valid. */
export const imageFaultOf = (image: string): string | undefined => {
  const [tagged = '', digest, ...others] = image.split('@', SEVERAL);
  if (others.length > 0) return 'has more than one digest';
  if (digest !== undefined && !DIGEST.test(digest))
    return 'must have a digest such as sha256:, followed by 64 digits from 0-9 and a-f';
  const { domain, rest } = withoutDomain(tagged);
  if (domain !== undefined && !DOMAIN.test(domain))
    return "must begin with a registry's host and optional port, or have no registry";
  const colon = rest.indexOf(':');
  const name = colon < 0 ? rest : rest.slice(0, colon);
  const fault = nameFaultOf(name);
  if (fault !== undefined) return fault;
  if (colon >= 0 && !TAG.test(rest.slice(colon + 1)))
    return (
      'must have a tag of at most 128 letters, digits, ".", "_" and "-", not beginning with ' +
      '"." or "-"'
    );
  if (withDomain(domain, name).length > LONGEST_NAME)
    return (
      `must be at most ${LONGEST_NAME} characters long, including the registry, without tag ` +
      'and digest'
    );
  return IMAGE_ID.test(name) && domain === undefined
    ? "must be a name, not an image's id"
    : undefined;
};

const nameFaultOf = (name: string): string | undefined => {
  if (name === '') return 'must name an image';
  const parts = name.split('/');
  if (parts.includes('..') || parts.includes('.')) return 'must not contain the parts ".." or "."';
  if (/[A-Z]/.test(name)) return 'must be lower case, except for tag and registry';
  return parts.every((part) => NAME.test(part))
    ? undefined
    : 'must be the name of a container image: parts of a-z and 0-9, with ".", "_", "__" or ' +
        '"-" between them, joined by "/"';
};

/** A domain has a dot, a port or brackets, or is `localhost`. */
const withoutDomain = (
  text: string,
): { readonly domain: string | undefined; readonly rest: string } => {
  const slash = text.indexOf('/');
  const first = text.slice(0, Math.max(slash, 0));
  return slash > 0 &&
    first !== '.' &&
    first !== '..' &&
    (/[.:]/.test(first) || first === 'localhost')
    ? { domain: first, rest: text.slice(slash + 1) }
    : { domain: undefined, rest: text };
};

const withDomain = (domain: string | undefined, name: string): string =>
  `${domain ?? (name.includes('/') ? 'docker.io' : 'docker.io/library')}/${name}`;
