import type { ReadinessProbe } from '../../../model/templates/readiness-probe.ts';
import type { InstanceDefinition } from '../../../model/templates/template.ts';

export interface PlacedProbe {
  readonly probe: ReadinessProbe;
  /** Absent for the container's own probe. */
  readonly endpoint?: string;
}

/**
 * A kubelet runs one readiness probe per container; the container's own comes first. An endpoint's
 * probe goes to the container that names its port, or to any free one, since a Pod's containers
 * share their ports.
 */
export const placedProbes = ({
  containers,
  endpoints = {},
}: InstanceDefinition): {
  readonly byContainer: ReadonlyMap<string, PlacedProbe>;
  readonly homeless: readonly string[];
} => {
  const byContainer = new Map<string, PlacedProbe>();
  for (const { name, readinessProbe } of containers)
    if (readinessProbe) byContainer.set(name, { probe: readinessProbe });
  const homeless: string[] = [];
  for (const [endpoint, { port, readinessProbe }] of Object.entries(endpoints)) {
    if (!readinessProbe) continue;
    const candidates =
      readinessProbe.action.kind === 'exec'
        ? containers.slice(0, 1)
        : containers.toSorted((a, b) => Number(names(b, port)) - Number(names(a, port)));
    const free = candidates.find(({ name }) => !byContainer.has(name));
    if (free) byContainer.set(free.name, { probe: readinessProbe, endpoint });
    else homeless.push(endpoint);
  }
  return { byContainer, homeless };
};

const names = ({ ports }: InstanceDefinition['containers'][number], port: number): boolean =>
  Object.values(ports).includes(port);
