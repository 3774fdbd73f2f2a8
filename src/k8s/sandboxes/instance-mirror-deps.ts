import { type InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import type { LaterSandbox } from './later-sandbox.ts';

export interface InstanceMirrorDeps {
  readonly report: (fact: InstanceFact) => void;
  readonly missesPod: (id: InstanceId) => void;
  readonly nodeTrouble: (nodeName: string) => string | undefined;
  readonly nodeLeaves?: (nodeName: string) => boolean;
  readonly idleTrouble?: (nodeName: string) => string | undefined;
  readonly recordIn?: (namespace: string) => void;
  readonly podsTrouble?: (namespace: string) => string | undefined;
  readonly podGone?: (uid: string) => void;
  /** Undefined once the record is gone. */
  readonly laterSandbox?: (key: string, record: LaterSandbox | undefined) => void;
}
