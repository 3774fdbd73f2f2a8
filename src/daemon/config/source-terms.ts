import type { SourceTerms } from '../../model/pools/source-terms.ts';
import type { Config } from './schema.ts';

/** Takes from the configuration what owners of pools may say themselves. */
export const sourceTerms = ({
  images,
  limits,
}: Pick<Config, 'images' | 'limits'>): SourceTerms => ({
  inlineTemplates: limits.inlineTemplates,
  images: images.allowed,
});
