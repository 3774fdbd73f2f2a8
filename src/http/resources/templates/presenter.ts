import { stringify } from 'yaml';
import { hasGlobalSource, isCopy, isGlobalHere } from '../../../model/templates/global-template.ts';
import type { SandboxTemplateDocument } from '../../../model/templates/template.ts';
import type { TemplateClusterView } from '../../../services/fleet-views.ts';
import type { TemplateView } from '../../../actors/views.ts';
import type { TemplateClusterWire, TemplateDeletionWire, TemplateWire } from './schema.ts';
import { presentInstanceShape } from '../instance-shape.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

export const presentTemplate = ({ record, definition }: TemplateView): TemplateWire => {
  const { description, docs, poolSizing } = record.document.spec;
  return {
    name: record.name,
    version: record.version,
    description,
    createdAt: timestampOf(record.createdAt),
    cpu: definition.cpu,
    memory: definition.memory,
    ...presentInstanceShape(definition),
    syncSource: hasGlobalSource(record) ? 'global' : undefined,
    fleet: isGlobalHere(record) ? 'source' : undefined,
    ...(isCopy(record) ? { fleet: 'copy' } : {}),
    docs,
    crdYaml: yamlOf(record.document),
    poolSizing,
  };
};

export const presentTemplateDeletion = (name: string): TemplateDeletionWire => ({
  name,
  status: 'deleted',
});

export const presentTemplateCluster = ({
  clusterId,
  state,
  version,
  message,
  at,
}: TemplateClusterView): TemplateClusterWire => ({
  clusterID: clusterId,
  state,
  version,
  message,
  at: timestampOf(at),
});

/** Documents of a version never change, and a list shows up to 1,000 of them. */
const yamls = new WeakMap<SandboxTemplateDocument, string>();

const yamlOf = (document: SandboxTemplateDocument): string => {
  const known = yamls.get(document);
  if (known !== undefined) return known;
  const yaml = stringify(document);
  yamls.set(document, yaml);
  return yaml;
};
