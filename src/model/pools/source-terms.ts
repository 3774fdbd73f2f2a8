import { fieldPath } from '../../lib/field-path.ts';
import { grantedFieldIn } from '../templates/placement.ts';
import { imageOf, type PoolSource } from './pool-source.ts';

export interface SourceTerms {
  readonly inlineTemplates: 'everyone' | 'nobody';
  /** Prefixes of a pool's own images; empty permits all. */
  readonly images: readonly string[];
}

export const OPEN_TERMS: SourceTerms = { inlineTemplates: 'everyone', images: [] };

export interface Ungranted {
  readonly field: string;
  readonly problem: string;
}

/** Does not check stored templates. */
export const ungrantedIn = (source: PoolSource, terms: SourceTerms): Ungranted | undefined => {
  const { template, overrides = {} } = source;
  if (template && terms.inlineTemplates === 'nobody') {
    return {
      field: 'template',
      problem: 'inline templates are disabled here; name a template with templateName',
    };
  }
  const granted = template && grantedFieldIn(template);
  if (granted !== undefined) {
    const last = String(granted.at(-1));
    const subject = last === 'network' ? 'host' : last;
    const problem = `${subject} is only allowed in templates that an admin created`;
    return { field: fieldPath(['template', ...granted]), problem };
  }
  const problem = 'is not one of the allowed images';
  const image = imageOf(overrides);
  if (image !== undefined && !isAllowed(image, terms.images))
    return { field: 'overrides.image', problem };
  const first = image === undefined ? 0 : 1; // the overrides replace the first container's image
  const others = template?.containers.slice(first) ?? [];
  const index = others.findIndex((container) => !isAllowed(container.image, terms.images));
  return index === -1
    ? undefined
    : { field: `template.containers[${index + first}].image`, problem };
};

/**
 * A prefix must end at a boundary of the name: `a.b/c` matches `a.b/c:1` and `a.b/c/d`, not
 * `a.b/cd`. A colon begins a tag: `a.b` does not match `a.b:5000/c`, which is another registry.
 */
export const isAllowed = (image: string, prefixes: readonly string[]): boolean =>
  prefixes.length === 0 ||
  prefixes.some((prefix) => {
    if (!image.startsWith(prefix)) return false;
    const rest = image.slice(prefix.length);
    return rest === '' || /[/:@]$/.test(prefix) || /^([/@]|:[^/]*$)/.test(rest);
  });
