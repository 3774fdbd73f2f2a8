import type { ToldTemplate } from '../../contracts/fleet/global-templates.ts';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import { fieldPath } from '../../lib/field-path.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import {
  SandboxTemplateSchema,
  type InstanceDefinition,
  type TemplateRecord,
  type TemplateVersion,
} from '../../model/templates/template.ts';
import { keptOf } from '../../model/templates/template-versions.ts';

const LONGEST_FAULT = 1_024;

export type ReadTemplate =
  | {
      readonly template: Omit<TemplateRecord, 'revision'>;
      readonly definition: InstanceDefinition;
    }
  | { readonly fault: string };

/**
 * Reads a template as a manager told it, or says what of it this cluster can't run or doesn't know.
 * `check` throws DefinitionRefused. Of earlier versions those that are not understood are left out.
 */
export const readToldTemplate = (
  { globalId, name, version, createdAt, document, earlier = [] }: ToldTemplate,
  check: (definition: InstanceDefinition) => void,
): ReadTemplate => {
  const parsed = SandboxTemplateSchema.safeParse(document);
  if (!parsed.success)
    return faultOf(
      parsed.error.issues.map(({ path, message }) => `${fieldPath(path)}: ${message}`).join('; '),
    );
  if (parsed.data.metadata.name !== name) return faultOf('metadata.name: is of another template');
  const definition = renderDefinition(parsed.data.spec);
  try {
    check(definition);
  } catch (error) {
    if (error instanceof DefinitionRefused) return faultOf(error.message);
    throw error;
  }
  const kept = keptOf(earlier.filter(isUnderstood));
  return {
    template: {
      ...{ name, version, createdAt, document: parsed.data, globalId },
      ...(kept.length > 0 ? { earlier: kept } : {}),
    },
    definition,
  };
};

const faultOf = (fault: string): ReadTemplate => ({ fault: fault.slice(0, LONGEST_FAULT) });

const isUnderstood = ({ spec }: TemplateVersion): boolean => {
  try {
    return SandboxTemplateSchema.shape.spec.safeParse(JSON.parse(spec)).success;
  } catch {
    return false;
  }
};
