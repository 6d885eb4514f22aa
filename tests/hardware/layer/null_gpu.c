/* A Vulkan layer that makes Mesa's AMD driver usable without an AMD GPU and reports what its compiler makes of compute pipelines.
 *
 * With RADV_FORCE_FAMILY=navi31 (or navi21, navi10, vega20, polaris10, gfx1201, ...) RADV creates a device without hardware. Its
 * compiler, ACO, then compiles every shader to the real instruction set, and submits do nothing. wgpu refuses that device because
 * it lacks memory types and timeline semaphores. The layer reports one memory type and hides the feature of timeline semaphores.
 * The layer also asks for the statistics of each compute pipeline (VK_KHR_pipeline_executable_properties). It appends them as a
 * line of JSON to the file that NULL_GPU_STATS names, and writes the instructions to a file in the folder that NULL_GPU_ISA names.
 *
 * Build: gcc -O2 -shared -fPIC -o libnull_gpu.so null_gpu.c        (the headers come with libvulkan-dev)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>

#define EXPORT __attribute__((visibility("default")))
#define MANY 64
/* The layer looks up the next entry points of an instance while the chain is built. Later the loader returns the top of the chain. */
typedef struct {
  void *key;
  PFN_vkGetInstanceProcAddr next;
  PFN_vkGetPhysicalDeviceFeatures2 features;
  PFN_vkCreateDevice create;
  PFN_vkDestroyInstance destroy;
} Instance;
typedef struct { void *key; VkDevice handle; PFN_vkGetDeviceProcAddr next; int statistics; } Device;
static Instance instances[MANY];
static Device devices[MANY];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipelines;

static void *key_of(void *handle) { return *(void **)handle; }
static Instance *instance_of(void *h) { for (int i = 0; i < MANY; i++) if (instances[i].key == key_of(h)) return &instances[i]; return 0; }
static Device *device_of(void *h) { for (int i = 0; i < MANY; i++) if (devices[i].key == key_of(h)) return &devices[i]; return 0; }
#define IN_DEVICE(h, name) ((PFN_##name)device_of(h)->next(device_of(h)->handle, #name))

/* ---- features that the driver lacks without hardware ---- */
static void memory(VkPhysicalDeviceMemoryProperties *m) {
  memset(m, 0, sizeof *m);
  m->memoryTypeCount = m->memoryHeapCount = 1;
  m->memoryHeaps[0].size = 16ull << 30;
  m->memoryHeaps[0].flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
  m->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                    VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
}
static VKAPI_ATTR void VKAPI_CALL MemoryProperties(VkPhysicalDevice p, VkPhysicalDeviceMemoryProperties *m) { memory(m); }
static VKAPI_ATTR void VKAPI_CALL MemoryProperties2(VkPhysicalDevice p, VkPhysicalDeviceMemoryProperties2 *m) {
  memory(&m->memoryProperties);
  for (VkBaseOutStructure *s = (void *)m->pNext; s; s = s->pNext)
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      ((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)s)->heapBudget[0] = 16ull << 30;
      ((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)s)->heapUsage[0] = 0;
    }
}
static VKAPI_ATTR void VKAPI_CALL BufferNeeds(VkDevice d, VkBuffer b, VkMemoryRequirements *r) {
  IN_DEVICE(d, vkGetBufferMemoryRequirements)(d, b, r);
  r->memoryTypeBits = 1;
}
static VKAPI_ATTR void VKAPI_CALL BufferNeeds2(VkDevice d, const VkBufferMemoryRequirementsInfo2 *b, VkMemoryRequirements2 *r) {
  IN_DEVICE(d, vkGetBufferMemoryRequirements2)(d, b, r);
  r->memoryRequirements.memoryTypeBits = 1;
}
static VKAPI_ATTR void VKAPI_CALL ImageNeeds(VkDevice d, VkImage i, VkMemoryRequirements *r) {
  IN_DEVICE(d, vkGetImageMemoryRequirements)(d, i, r);
  r->memoryTypeBits = 1;
}
static VKAPI_ATTR void VKAPI_CALL ImageNeeds2(VkDevice d, const VkImageMemoryRequirementsInfo2 *i, VkMemoryRequirements2 *r) {
  IN_DEVICE(d, vkGetImageMemoryRequirements2)(d, i, r);
  r->memoryRequirements.memoryTypeBits = 1;
}
static VKAPI_ATTR void VKAPI_CALL Features2(VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *f) {
  instance_of(p)->features(p, f);
  for (VkBaseOutStructure *s = (void *)f->pNext; s; s = s->pNext) {
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES)
      ((VkPhysicalDeviceTimelineSemaphoreFeatures *)s)->timelineSemaphore = VK_FALSE;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
      ((VkPhysicalDeviceVulkan12Features *)s)->timelineSemaphore = VK_FALSE;
  }
}

/* ---- recording and running: the driver cannot do either without hardware, so the layer answers and does nothing ---- */
static VKAPI_ATTR void VKAPI_CALL Nothing(void) {}
static VKAPI_ATTR VkResult VKAPI_CALL Done(void) { return VK_SUCCESS; }
static uint64_t handles;
static VKAPI_ATTR VkResult VKAPI_CALL Handle(VkDevice d, const void *ci, const VkAllocationCallbacks *a, uint64_t *out) {
  *out = __sync_add_and_fetch(&handles, 1);
  return VK_SUCCESS;
}
static PFN_vkVoidFunction idle(const char *name) {
  static const char *const done[] = {"vkBeginCommandBuffer", "vkEndCommandBuffer", "vkResetCommandBuffer", "vkResetCommandPool",
                                     "vkQueueSubmit", "vkQueueSubmit2", "vkQueueSubmit2KHR", "vkQueueWaitIdle", "vkDeviceWaitIdle",
                                     "vkWaitForFences", "vkGetFenceStatus", "vkResetFences", "vkGetQueryPoolResults"};
  for (unsigned i = 0; i < sizeof done / sizeof *done; i++) if (!strcmp(name, done[i])) return (PFN_vkVoidFunction)Done;
  if (!strcmp(name, "vkCreateFence") || !strcmp(name, "vkCreateSemaphore")) return (PFN_vkVoidFunction)Handle;
  if (!strcmp(name, "vkDestroyFence") || !strcmp(name, "vkDestroySemaphore")) return (PFN_vkVoidFunction)Nothing;
  return strncmp(name, "vkCmd", 5) ? 0 : (PFN_vkVoidFunction)Nothing;
}

/* ---- statistics and instructions of pipelines ---- */
static void report(VkDevice d, VkPipeline pipeline, int number, FILE *file, const char *folder) {
  VkPipelineInfoKHR info = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, 0, pipeline};
  uint32_t executables = 0;
  IN_DEVICE(d, vkGetPipelineExecutablePropertiesKHR)(d, &info, &executables, 0);
  for (uint32_t e = 0; e < executables; e++) {
    VkPipelineExecutablePropertiesKHR properties[8];
    uint32_t n = 8, count = 0;
    for (int i = 0; i < 8; i++) properties[i] = (VkPipelineExecutablePropertiesKHR){VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
    IN_DEVICE(d, vkGetPipelineExecutablePropertiesKHR)(d, &info, &n, properties);
    VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, 0, pipeline, e};
    IN_DEVICE(d, vkGetPipelineExecutableStatisticsKHR)(d, &which, &count, 0);
    VkPipelineExecutableStatisticKHR *s = calloc(count + 1, sizeof *s);
    for (uint32_t i = 0; i < count; i++) s[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    IN_DEVICE(d, vkGetPipelineExecutableStatisticsKHR)(d, &which, &count, s);
    if (file) {
      fprintf(file, "{\"pipeline\": %d, \"subgroup\": %u", number, properties[e < 8 ? e : 0].subgroupSize);
      for (uint32_t i = 0; i < count; i++) {
        fprintf(file, ", \"%s\": ", s[i].name);
        if (s[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR) fprintf(file, "%g", s[i].value.f64);
        else fprintf(file, "%llu", (unsigned long long)s[i].value.u64);
      }
      fprintf(file, "}\n");
    }
    free(s);
    if (folder) {
      uint32_t parts = 0;
      IN_DEVICE(d, vkGetPipelineExecutableInternalRepresentationsKHR)(d, &which, &parts, 0);
      VkPipelineExecutableInternalRepresentationKHR *p = calloc(parts + 1, sizeof *p);
      for (uint32_t i = 0; i < parts; i++) p[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
      IN_DEVICE(d, vkGetPipelineExecutableInternalRepresentationsKHR)(d, &which, &parts, p);
      for (uint32_t i = 0; i < parts; i++) p[i].pData = calloc(1, p[i].dataSize + 1);
      IN_DEVICE(d, vkGetPipelineExecutableInternalRepresentationsKHR)(d, &which, &parts, p);
      char path[4096];
      snprintf(path, sizeof path, "%s/%05d.txt", folder, number);
      FILE *out = fopen(path, "w");
      for (uint32_t i = 0; i < parts; i++) {
        if (out && p[i].isText) fprintf(out, "==== %s\n%s\n", p[i].name, (char *)p[i].pData);
        free(p[i].pData);
      }
      if (out) fclose(out);
      free(p);
    }
  }
}
static VKAPI_ATTR VkResult VKAPI_CALL ComputePipelines(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                       const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *a,
                                                       VkPipeline *out) {
  const char *stats = getenv("NULL_GPU_STATS"), *folder = getenv("NULL_GPU_ISA");
  VkComputePipelineCreateInfo *mine = malloc(n * sizeof *mine);
  memcpy(mine, infos, n * sizeof *mine);
  int reporting = device_of(d)->statistics && (stats || folder);
  for (uint32_t i = 0; reporting && i < n; i++) {
    mine[i].flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    if (folder) mine[i].flags |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  }
  VkResult r = IN_DEVICE(d, vkCreateComputePipelines)(d, reporting ? 0 : cache, n, mine, a, out);
  if (reporting && r == VK_SUCCESS) {
    pthread_mutex_lock(&lock);
    FILE *file = stats ? fopen(stats, "a") : 0;
    for (uint32_t i = 0; i < n; i++) report(d, out[i], pipelines++, file, folder);
    if (file) fclose(file);
    pthread_mutex_unlock(&lock);
  }
  free(mine);
  return r;
}

/* ---- the chain ---- */
static VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo *ci, const VkAllocationCallbacks *a, VkInstance *out) {
  VkLayerInstanceCreateInfo *l = (void *)ci->pNext;
  while (l && !(l->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO && l->function == VK_LAYER_LINK_INFO)) l = (void *)l->pNext;
  if (!l) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr next = l->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  l->u.pLayerInfo = l->u.pLayerInfo->pNext;
  VkResult r = ((PFN_vkCreateInstance)next(NULL, "vkCreateInstance"))(ci, a, out);
  pthread_mutex_lock(&lock);
  for (int i = 0; r == VK_SUCCESS && i < MANY; i++)
    if (!instances[i].key) {
      PFN_vkGetPhysicalDeviceFeatures2 features = (PFN_vkGetPhysicalDeviceFeatures2)next(*out, "vkGetPhysicalDeviceFeatures2");
      if (!features) features = (PFN_vkGetPhysicalDeviceFeatures2)next(*out, "vkGetPhysicalDeviceFeatures2KHR");
      instances[i] = (Instance){key_of(*out), next, features, (PFN_vkCreateDevice)next(*out, "vkCreateDevice"),
                                (PFN_vkDestroyInstance)next(*out, "vkDestroyInstance")};
      break;
    }
  pthread_mutex_unlock(&lock);
  return r;
}
static VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance in, const VkAllocationCallbacks *a) {
  PFN_vkDestroyInstance next = instance_of(in)->destroy;
  memset(instance_of(in), 0, sizeof(Instance));
  next(in, a);
}
static VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo *ci, const VkAllocationCallbacks *a, VkDevice *out) {
  VkLayerDeviceCreateInfo *l = (void *)ci->pNext;
  while (l && !(l->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO && l->function == VK_LAYER_LINK_INFO)) l = (void *)l->pNext;
  if (!l) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetDeviceProcAddr next = l->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  l->u.pLayerInfo = l->u.pLayerInfo->pNext;
  PFN_vkCreateDevice create = instance_of(p)->create;
  VkDeviceCreateInfo c = *ci;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR reporting = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, (void *)ci->pNext, VK_TRUE};
  const char **names = malloc((c.enabledExtensionCount + 1) * sizeof *names);
  if (c.enabledExtensionCount) memcpy(names, c.ppEnabledExtensionNames, c.enabledExtensionCount * sizeof *names);
  names[c.enabledExtensionCount++] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
  c.ppEnabledExtensionNames = names;
  c.pNext = &reporting;
  int statistics = 1;
  VkResult r = create(p, &c, a, out);
  if (r != VK_SUCCESS) { statistics = 0; r = create(p, ci, a, out); }
  free(names);
  pthread_mutex_lock(&lock);
  for (int i = 0; r == VK_SUCCESS && i < MANY; i++)
    if (!devices[i].key) { devices[i] = (Device){key_of(*out), *out, next, statistics}; break; }
  pthread_mutex_unlock(&lock);
  return r;
}
static VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice d, const VkAllocationCallbacks *a) {
  PFN_vkDestroyDevice next = IN_DEVICE(d, vkDestroyDevice);
  memset(device_of(d), 0, sizeof(Device));
  next(d, a);
}
EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL NullGetDeviceProcAddr(VkDevice d, const char *n);
EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL NullGetInstanceProcAddr(VkInstance in, const char *n) {
#define OURS(s, f) if (!strcmp(n, s)) return (PFN_vkVoidFunction)f
  OURS("vkGetInstanceProcAddr", NullGetInstanceProcAddr); OURS("vkGetDeviceProcAddr", NullGetDeviceProcAddr);
  OURS("vkCreateInstance", CreateInstance); OURS("vkDestroyInstance", DestroyInstance);
  OURS("vkCreateDevice", CreateDevice); OURS("vkDestroyDevice", DestroyDevice);
  OURS("vkGetPhysicalDeviceMemoryProperties", MemoryProperties);
  OURS("vkGetPhysicalDeviceMemoryProperties2", MemoryProperties2); OURS("vkGetPhysicalDeviceMemoryProperties2KHR", MemoryProperties2);
  OURS("vkGetPhysicalDeviceFeatures2", Features2); OURS("vkGetPhysicalDeviceFeatures2KHR", Features2);
  Instance *i = in ? instance_of(in) : 0;
  return i ? i->next(in, n) : 0;
}
EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL NullGetDeviceProcAddr(VkDevice d, const char *n) {
  OURS("vkGetDeviceProcAddr", NullGetDeviceProcAddr); OURS("vkDestroyDevice", DestroyDevice);
  OURS("vkGetBufferMemoryRequirements", BufferNeeds); OURS("vkGetImageMemoryRequirements", ImageNeeds);
  OURS("vkGetBufferMemoryRequirements2", BufferNeeds2); OURS("vkGetBufferMemoryRequirements2KHR", BufferNeeds2);
  OURS("vkGetImageMemoryRequirements2", ImageNeeds2); OURS("vkGetImageMemoryRequirements2KHR", ImageNeeds2);
  OURS("vkCreateComputePipelines", ComputePipelines);
  if (idle(n)) return idle(n);
  Device *v = device_of(d);
  return v ? v->next(d, n) : 0;
}
EXPORT VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *v) {
  if (v->loaderLayerInterfaceVersion > 2) v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = NullGetInstanceProcAddr;
  v->pfnGetDeviceProcAddr = NullGetDeviceProcAddr;
  v->pfnGetPhysicalDeviceProcAddr = NULL;
  return VK_SUCCESS;
}
