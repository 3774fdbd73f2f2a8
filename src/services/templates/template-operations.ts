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

/** The use cases of templates, and what else pools may name. */
export interface TemplateOperations {
  readonly getTemplate: (name: string) => Promise<TemplateView>;
  readonly listTemplates: (page: PageRequest) => Page<TemplateView>;
  /** These three for `/admin`. Durable when they resolve. */
  readonly createTemplate: (
    document: SandboxTemplateDocument,
    terms?: TemplateTerms,
  ) => Promise<TemplateView>;
  readonly updateTemplate: (
    name: string,
    change: TemplateChange & {
      readonly ifMatch?: IfMatch;
      /** The empty text: it is global no more. */
      readonly syncSource?: 'global' | '';
    },
  ) => Promise<TemplateView>;
  readonly deleteTemplate: (name: string) => Promise<void>;
  readonly listInstanceTypes: () => readonly InstanceType[];
  /** Lists volumes of the caller's namespace; whose it is follows from the key alone. */
  readonly listVolumes: (caller: Caller) => Promise<readonly Volume[]>;
  readonly featureGates: () => FeatureGates;
  readonly listClusters: () => readonly ClusterView[];
}

/** `global`: it goes to all clusters of a manager, and stays the same there. */
export interface TemplateTerms {
  readonly syncSource?: 'global';
}

/** A change of a template; what is not named stays. An empty text is none. */
export interface TemplateChange {
  readonly document?: SandboxTemplateDocument;
  readonly description?: string;
  readonly docs?: string;
  readonly poolSizing?: (typeof POOL_SIZINGS)[number];
}
