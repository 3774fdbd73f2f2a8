import { appliedSpec, namesWhatToRun } from './applied-spec.ts';
import { fieldPath } from '../../lib/field-path.ts';
import type { InstanceType } from '../templates/instance-type.ts';
import { CLOSED_BREAKER, type PoolRecord, type Unresolved } from './pool.ts';
import type { PoolSource } from './pool-source.ts';
import { renderDefinition } from './render-definition.ts';
import { OPEN_TERMS, ungrantedIn, type SourceTerms } from './source-terms.ts';
import {
  SandboxTemplateSchema,
  type InstanceDefinition,
  type TemplateRecord,
  type TemplateSpec,
} from '../templates/template.ts';
import { specOfVersion } from '../templates/template-versions.ts';
import { updateRevisionOf } from './update-revision.ts';

export interface RenderLookups {
  readonly template: (name: string) => TemplateRecord | undefined;
  readonly instanceType: (name: string) => InstanceType | undefined;
  /** Absent to permit everything that needs no admin's template. */
  readonly terms?: SourceTerms;
}

export type RenderedPool = Pick<PoolRecord, 'templateVersion' | 'definition' | 'updateRevision'>;

export class SourceFault extends Error {
  override readonly name = 'SourceFault';
  readonly field: string;
  readonly problem: string;

  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`);
    this.field = field;
    this.problem = problem;
  }
}

/** Throws SourceFault. */
export const renderPool = (source: PoolSource, lookups: RenderLookups): RenderedPool => {
  const { spec, templateVersion } = poolSpecOf(source, lookups);
  const definition: InstanceDefinition = renderDefinition(spec, source.overrides);
  return {
    definition,
    updateRevision: updateRevisionOf(definition),
    ...(templateVersion === undefined ? {} : { templateVersion }),
  };
};

/** A new revision resets the failure count. */
export const withRendered = <T extends Omit<PoolRecord, 'revision'>>(
  record: T,
  source: PoolSource,
  rendered: RenderedPool,
): T => {
  const changed: T & { templateVersion?: string; unrendered?: true; unresolved?: Unresolved } = {
    ...record,
    source,
  };
  delete changed.templateVersion;
  delete changed.unrendered;
  delete changed.unresolved;
  return {
    ...changed,
    ...rendered,
    ...(rendered.updateRevision === record.updateRevision ? {} : { breaker: CLOSED_BREAKER }),
  };
};

/** Throws SourceFault. */
export const poolSpecOf = (
  source: PoolSource,
  lookups: RenderLookups,
): { readonly spec: TemplateSpec; readonly templateVersion?: string } => {
  if (!namesWhatToRun(source))
    throw new SourceFault(
      'templateName',
      'is required if there is neither template nor overrides.image',
    );
  const ungranted = ungrantedIn(source, lookups.terms ?? OPEN_TERMS);
  if (ungranted) throw new SourceFault(ungranted.field, ungranted.problem);
  const template =
    source.templateName === undefined ? undefined : lookups.template(source.templateName);
  if (source.templateName !== undefined && !template)
    throw new SourceFault('templateName', `there is no usable template ${source.templateName}`);
  const named = template && namedSpec(template, source);
  const base = source.template ?? named;
  const sized = withDefaults(source, base?.defaults, lookups);
  const spec = checked(appliedSpec(base, sized, instanceTypeOf(sized, lookups)), source);
  return {
    spec,
    templateVersion: template ? (source.templateVersion ?? template.version) : undefined,
  };
};

const withDefaults = (
  source: PoolSource,
  { instanceType, multiplier }: NonNullable<TemplateSpec['defaults']> = {},
  lookups: RenderLookups,
): PoolSource =>
  source.instanceType !== undefined ||
  instanceType === undefined ||
  !lookups.instanceType(instanceType)
    ? source
    : {
        ...source,
        instanceType,
        ...(source.multiplier === undefined && multiplier !== undefined ? { multiplier } : {}),
      };

const namedSpec = (template: TemplateRecord, { templateVersion }: PoolSource): TemplateSpec => {
  if (templateVersion === undefined) return template.document.spec;
  const spec = specOfVersion(template, templateVersion);
  if (!spec)
    throw new SourceFault(
      'templateVersion',
      `version ${templateVersion} of template ${template.name} is no longer stored`,
    );
  return spec;
};

const instanceTypeOf = (
  { instanceType: name, multiplier }: PoolSource,
  lookups: RenderLookups,
): InstanceType | undefined => {
  if (name === undefined) {
    if (multiplier !== undefined) throw new SourceFault('multiplier', 'needs an instanceType');
    return undefined;
  }
  const instanceType = lookups.instanceType(name);
  if (!instanceType) throw new SourceFault('instanceType', `there is no instance type ${name}`);
  if ((multiplier ?? 1) > instanceType.maxMultiplier)
    throw new SourceFault(
      'multiplier',
      `must be at most ${instanceType.maxMultiplier}, the maxMultiplier of ${name}`,
    );
  return instanceType;
};

/** An inline template may be invalid, and a multiplied size may be too large. */
const checked = (spec: TemplateSpec, source: PoolSource): TemplateSpec => {
  const parsed = SandboxTemplateSchema.shape.spec.safeParse(spec);
  const issue = parsed.error?.issues[0];
  if (!issue) return spec;
  const path = fieldPath(issue.path);
  if (path.startsWith('containers[0].resources') && source.multiplier !== undefined)
    throw new SourceFault('multiplier', `${path}: ${issue.message}`);
  if (source.template) throw new SourceFault(fieldPath(['template', ...issue.path]), issue.message);
  throw new SourceFault('templateName', `${path}: ${issue.message}`);
};
