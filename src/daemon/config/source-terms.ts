import type { SourceTerms } from '../../model/pools/source-terms.ts';
import type { Config } from './schema.ts';

export const sourceTerms = ({
  images,
  limits,
}: Pick<Config, 'images' | 'limits'>): SourceTerms => ({
  inlineTemplates: limits.inlineTemplates,
  images: images.allowed,
});
