import type { InstanceTypes } from '../../../contracts/instance-types.ts';
import { DefinitionRefused, type SandboxDriver } from '../../../contracts/sandbox-driver.ts';
import type { Volumes } from '../../../contracts/volumes.ts';
import type { PoolSource } from '../../../model/pools/pool-source.ts';
import {
  featureDisabled,
  invalidArgument,
  templateNotFound,
  type Refusal,
} from '../../../model/refusals.ts';
import {
  renderPool,
  SourceFault,
  type RenderedPool,
  type RenderLookups,
} from '../../../model/pools/render-pool.ts';
import type { SourceTerms } from '../../../model/pools/source-terms.ts';
import { hasGlobalSource } from '../../../model/templates/global-template.ts';
import type { TemplateRecord } from '../../../model/templates/template.ts';
import type { TemplateCatalog } from '../template-catalog.ts';

export interface PoolRenderingDeps {
  readonly templates: TemplateCatalog;
  readonly types: InstanceTypes;
  readonly volumes: Volumes;
  readonly driver: Pick<SandboxDriver, 'check'>;
  /** Restrictions on pool owners' fields (see RenderLookups). */
  readonly terms?: SourceTerms;
  /** Converts a source's field name to the request's; unchanged if absent. */
  readonly fieldOf?: (field: string) => string;
}

const MOST_CHOICES = 50;

export const lookupsOf = ({
  templates,
  types,
  terms,
}: Pick<PoolRenderingDeps, 'templates' | 'types' | 'terms'>): RenderLookups => ({
  template: (name) => templates.get(name),
  instanceType: (name) => types.get(name),
  terms,
});

/**
 * Refuses by the request's field if the source can't be rendered, if this daemon can't run it, or
 * if a volume is outside the namespace.
 */
export const renderSource = async (
  deps: PoolRenderingDeps,
  source: PoolSource,
  namespace: string,
): Promise<RenderedPool> => {
  if (source.instanceType !== undefined && !deps.types.provided)
    throw featureDisabled('instanceType', 'instance types');
  if (source.templateName !== undefined) await deps.templates.lookUp(source.templateName);
  let rendered: RenderedPool;
  try {
    rendered = renderPool(source, lookupsOf(deps));
    deps.driver.check(rendered.definition);
  } catch (error) {
    throw refusalOf(deps, source, error);
  }
  await requireVolumes(deps.volumes, source, namespace);
  return rendered;
};

const refusalOf = (deps: PoolRenderingDeps, source: PoolSource, error: unknown): unknown => {
  const { fieldOf = (name: string) => name } = deps;
  if (error instanceof DefinitionRefused) return refusedByDriver(source, error.message, fieldOf);
  if (!(error instanceof SourceFault)) return error;
  const { field, problem } = error;
  if (
    field === 'templateName' &&
    source.templateName !== undefined &&
    !deps.templates.get(source.templateName)
  ) {
    return templateNotFound(deps.templates.list(MOST_CHOICES).map(choiceOf), fieldOf(field));
  }
  return invalidArgument(
    fieldOf(field),
    problem,
    field === 'instanceType'
      ? deps.types
          .list()
          .slice(0, MOST_CHOICES)
          .map(({ name }) => name)
      : undefined,
  );
};

const choiceOf = (record: TemplateRecord) => ({
  name: record.name,
  description: record.document.spec.description ?? '',
  syncSource: hasGlobalSource(record) ? 'global' : undefined,
});

/** The driver names the template's field (`spec.containers[0].image: PROBLEM`) or an override. */
const refusedByDriver = (
  source: PoolSource,
  message: string,
  fieldOf: (field: string) => string,
): Refusal => {
  const { template, templateName } = source;
  const [, field = '', problem = message] = /^([^ ]+): (.*)$/s.exec(message) ?? [];
  const own = field.startsWith('overrides.') ? field : ownFieldOf(source, field);
  if (own !== undefined) return invalidArgument(own, problem);
  if (template) return invalidArgument(field.replace('spec', 'template'), problem);
  return invalidArgument(
    templateName === undefined ? 'overrides.image' : fieldOf('templateName'),
    `this daemon can't run the template: ${message}`,
  );
};

const ownFieldOf = (
  { overrides, inlineResources, instanceType, multiplier, ...own }: PoolSource,
  field: string,
): string | undefined => {
  if (field === 'spec.containers[0].image')
    return overrides?.image === undefined ? undefined : 'overrides.image';
  const [, resource] = /^spec\.containers\[0\]\.resources\.limits\.(cpu|memory)$/.exec(field) ?? [];
  if (resource !== 'cpu' && resource !== 'memory') return undefined;
  if (own[resource] !== undefined) return resource;
  for (const kind of ['limits', 'requests'] as const)
    if (inlineResources?.[kind]?.[resource] !== undefined)
      return `inlineResources.${kind}.${resource}`;
  if (instanceType === undefined) return undefined;
  return multiplier === undefined ? 'instanceType' : 'multiplier';
};

const requireVolumes = async (
  volumes: Volumes,
  { overrides }: PoolSource,
  namespace: string,
): Promise<void> => {
  const mounts = overrides?.volumes ?? [];
  if (mounts.length === 0) return;
  if (!volumes.provided) throw featureDisabled('overrides.volumes', 'volumes');
  const claims = (await volumes.list(namespace)).map(({ claimName }) => claimName);
  mounts.forEach(({ claimName, mountPath }, index) => {
    if (!claims.includes(claimName))
      throw invalidArgument(
        `overrides.volumes[${index}].claimName`,
        'must be one of GET /volumes',
        claims.slice(0, MOST_CHOICES),
      );
    if (mounts.findIndex((other) => other.mountPath === mountPath) !== index)
      throw invalidArgument(`overrides.volumes[${index}].mountPath`, 'is given twice');
  });
};
