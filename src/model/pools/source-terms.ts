import { fieldPath } from '../../lib/field-path.ts';
import { grantedFieldIn } from '../templates/placement.ts';
import { imageOf, type PoolSource } from './pool-source.ts';

/** Describes what pools may say themselves, beside the templates that an admin stored. */
export interface SourceTerms {
  readonly inlineTemplates: 'everyone' | 'nobody';
  /** Prefixes of the images that a pool may name itself; none: it may name any. */
  readonly images: readonly string[];
}

/** Lets a pool name any image and have a template of its own. */
export const OPEN_TERMS: SourceTerms = { inlineTemplates: 'everyone', images: [] };

/** A field of the source that its owner may not have. */
export interface Ungranted {
  readonly field: string;
  readonly problem: string;
}

/**
 * The first field of a source that its owner may not have: what only a template that an admin
 * stored says, and what the terms exclude. Undefined where there is none. Stored templates are not
 * asked.
 */
export const ungrantedIn = (source: PoolSource, terms: SourceTerms): Ungranted | undefined => {
  const { template, overrides = {} } = source;
  if (template && terms.inlineTemplates === 'nobody') {
    return {
      field: 'template',
      problem: 'inline templates are switched off here; name one by templateName',
    };
  }
  const granted = template && grantedFieldIn(template);
  if (granted !== undefined) {
    const last = String(granted.at(-1));
    const subject = last === 'network' ? 'host' : last;
    const problem = `${subject} is only for templates that an admin stored`;
    return { field: fieldPath(['template', ...granted]), problem };
  }
  const problem = 'is not one of the images that are allowed here';
  const image = imageOf(overrides);
  if (image !== undefined && !isAllowed(image, terms.images))
    return { field: 'overrides.image', problem };
  const first = image === undefined ? 0 : 1; // the first container's is the one of the overrides
  const others = template?.containers.slice(first) ?? [];
  const index = others.findIndex((container) => !isAllowed(container.image, terms.images));
  return index === -1
    ? undefined
    : { field: `template.containers[${index + first}].image`, problem };
};

/**
 * Whether one of the prefixes begins the image's name, or there are none.
 * A prefix ends where a part of the image's name does: `a.b/c` is one of `a.b/c:1` and `a.b/c/d`,
 * not of `a.b/cd`. What follows a colon is a tag: `a.b` is not one of `a.b:5000/c`, which is
 * another registry.
 */
export const isAllowed = (image: string, prefixes: readonly string[]): boolean =>
  prefixes.length === 0 ||
  prefixes.some((prefix) => {
    if (!image.startsWith(prefix)) return false;
    const rest = image.slice(prefix.length);
    return rest === '' || /[/:@]$/.test(prefix) || /^([/@]|:[^/]*$)/.test(rest);
  });
