import type { Volume } from '../../contracts/volumes.ts';
import type { IfMatch } from '../../model/if-match.ts';
import type { InstanceType } from '../../model/templates/instance-type.ts';
import type { POOL_SIZINGS, SandboxTemplateDocument } from '../../model/templates/template.ts';
import type { Caller } from '../../model/tenant.ts';
import type {
  ClusterView,
  FeatureGates,
  Page,
  PageRequest,
  TemplateView,
} from '../../actors/views.ts';

export interface TemplateOperations {
  readonly getTemplate: (name: string) => Promise<TemplateView>;
  readonly listTemplates: (page: PageRequest) => Page<TemplateView>;
  /** These three are for `/admin`. Durable when they resolve. */
  readonly createTemplate: (
    document: SandboxTemplateDocument,
    terms?: TemplateTerms,
  ) => Promise<TemplateView>;
  readonly updateTemplate: (
    name: string,
    change: TemplateChange & {
      readonly ifMatch?: IfMatch;
      /** The empty text makes the template no longer global. */
      readonly syncSource?: 'global' | '';
    },
  ) => Promise<TemplateView>;
  readonly deleteTemplate: (name: string) => Promise<void>;
  readonly listInstanceTypes: () => readonly InstanceType[];
  /** Only those of the namespace that the key gives. */
  readonly listVolumes: (caller: Caller) => Promise<readonly Volume[]>;
  readonly featureGates: () => FeatureGates;
  readonly listClusters: () => readonly ClusterView[];
}

/** `global`: the manager replicates the template to all its clusters. */
export interface TemplateTerms {
  readonly syncSource?: 'global';
}

/** Absent fields stay. An empty text removes a field. */
export interface TemplateChange {
  readonly document?: SandboxTemplateDocument;
  readonly description?: string;
  readonly docs?: string;
  readonly poolSizing?: (typeof POOL_SIZINGS)[number];
}
